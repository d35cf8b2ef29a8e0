"""The experiments of the paper: methods, tables and figures."""
