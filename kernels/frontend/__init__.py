"""Networks from outside: ONNX files, named networks, sets of examples."""
