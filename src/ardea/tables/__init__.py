"""Files: tables, series and fields read from them, and files written whole or not at all."""
