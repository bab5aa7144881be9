"""Documents that several tests of this room read."""

DOCUMENTS = [f"Document {i} says: {'über ' * (i % 7)}{'words and words ' * (i % 11)}\n" for i in range(60)]
