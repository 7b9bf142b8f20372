import sys
from pathlib import Path

# The tests of localfs share helpers.
sys.path.insert(0, str(Path(__file__).parent))
