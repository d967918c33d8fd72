"""Tables as people have them: from a file, or stdin, to columns and what each is good for.

`table` reads what a file holds: unpacked (`content`), as UTF-8 (`encoding`), by its kind
(`delimited`, `columnar`, `json_rows`, `excel`). `roles` then decides what each column is for, with
`numbers`, `dates` and `ids` to tell them apart. What was assumed on the way is said.
"""
