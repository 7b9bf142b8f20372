import sys
from pathlib import Path

# The tests of this folder share how an optimizer is asked and told.
sys.path.insert(0, str(Path(__file__).parent))
