"""What the table of speeds consists of: its rows, its peers, and the settings in which each peer is measured.

A result's name is its row's and its setting's, "jpeg-train-spdl-own". The first settings of a peer are those that may be its
best: without all of them at one commit on one processor nothing is said of the peer. Those after the None were slower
wherever they were measured; they are measured again with a whole table, and count where they are faster.
"""

_DECODERS = {"PyTorch": ("torch", None), "tf.data, Keras": ("tfdata", None), "DALI": ("dali", None), "FFCV": ("ffcv", None),
             "SPDL": ("spdl", None, "spdl-own"), "Grain": ("grain", None), "WebDataset": ("webdataset", None)}

# By row: what is done, and the settings of each peer.
ROWS = {
    "jpeg-train": ("decode, random resized crop, flip; later passes",
                   _DECODERS | {"PyTorch": ("torch", None, "torch-pillow"), "bare C++": ("libjpeg", None)}),
    "jpeg-train-first-pass": ("the same, from the first batch on",
                              _DECODERS | {"SPDL": ("spdl", None), "bare C++": ("libjpeg", None)}),
    "jpeg-eval": ("decode, resize, centre crop", _DECODERS),
    "cifar-jpeg": ("32x32 JPEGs, crop, flip, normalise", _DECODERS),
    "cifar-train": ("the same from memory",
                    {"PyTorch": ("torch", None, "torch-per-sample"), "tf.data, Keras": ("tfdata", None), "DALI": ("dali", None),
                     "FFCV": ("ffcv", None), "SPDL": ("spdl", None), "Grain": ("grain", None), "bare C++": ("loop", None)}),
    "mnist-mlp": ("an epoch of training, f32",
                  {"PyTorch": ("torch", "torch-2threads", None, "torch-compiled"), "libtorch": ("libtorch", None),
                   "tf.data, Keras": ("keras-xla", None, "keras")}),
    "train-step": ("CIFAR net, f32", {"PyTorch": ("torch", "torch-compiled", None), "libtorch": ("libtorch", None)}),
    "train-step-bf16": ("CIFAR net, bf16", {"PyTorch": ("torch", "torch-compiled", None)}),
}
PEERS = ["PyTorch", "libtorch", "tf.data, Keras", "DALI", "FFCV", "SPDL", "Grain", "WebDataset", "bare C++"]

# Rows of later passes, which are quicker than the first one, and the row of that.
FIRST_PASSES = {"jpeg-train": "jpeg-train-first-pass"}

# Headrace beside itself: no part of the table.
BESIDE_ITSELF = ("cifar-jpeg-warm-disk", "mnist-mlp-beside-load", "mnist-mlp-virtual-shards", "skewed-unordered",
                 "train-step-virtual-shards")


def needed(settings):
    return settings[:settings.index(None)]


def every(settings):
    return [setting for setting in settings if setting is not None]


def all_names():
    """Of the results that a whole table has, row by row."""
    return [f"{row}-{setting}" for row, (_, peers) in ROWS.items() for settings in peers.values() for setting in every(settings)]
