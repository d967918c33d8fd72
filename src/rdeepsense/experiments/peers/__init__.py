"""Methods of other libraries, and objects of one's own, beside those of this package."""
