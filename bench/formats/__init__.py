"""The same readings in every format: how fast each is read, here and by others."""
