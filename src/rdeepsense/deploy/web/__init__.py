"""A model as a web page: its C as WebAssembly, one script, and no server but one of files."""
