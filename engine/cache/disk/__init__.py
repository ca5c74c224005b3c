"""The disk tier of the prefix cache: records, their index, and the thread that writes them."""
