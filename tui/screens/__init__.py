"""The screens: one file each, a list of rows and what a row says in detail."""
