"""Reading of tables: from a file or stdin to columns and their roles.

`table` reads a table of any format: `content` unpacks the bytes and detects the format, `text`
parses delimited text, and `blocks` reads CSV that is larger than memory. `columns` then decides
what each column contains and its role. The user is told what was assumed.
"""
