"""Training on GPUs with memory of their own: products that end in what follows them."""
