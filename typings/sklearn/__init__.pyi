# What rdeepsense uses of scikit-learn, which ships no types. Nothing here is installed.
__version__: str
