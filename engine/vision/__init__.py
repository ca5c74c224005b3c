"""Pictures for models that see: their ids, and the embeddings that a model gets in their place.

mlx-lm's models read token ids or embeddings. The part of a model that turns a picture into
embeddings, its vision tower, comes from mlx-vlm. seeing.py joins both, and its class `Vision` is
all that other packages use. Engine thread only.
"""
