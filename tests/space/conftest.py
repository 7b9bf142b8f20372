import sys
from pathlib import Path

# The tests of this folder share generators of random spaces.
sys.path.insert(0, str(Path(__file__).parent))
