"""headrace.train: nets as chains, nets from nets, and weights from files."""

import json

import numpy as np
import pytest

import headrace as hr
from headrace import train

CLASSES = 3


@pytest.fixture
def batches():
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (48, 6, 6, 1)).astype(np.uint8)
    return hr.from_arrays({"image": images, "label": np.arange(48) % CLASSES}).batch(16)


def built(net, data, seed=1):
    return train.Strategy("cpu:2", announce=False).build(net, data=data, seed=seed)


def base_net(g):
    x = g.max_pool(g.conv(g.input("image"), 4, activation="relu"), 2)
    return g.dense(g.dense(g.flatten(x), 8, activation="relu", name="features"), CLASSES, name="head")


# ------------------------------------------------------------------------------------------------- Sequential


def test_a_sequential_is_the_same_net(batches):
    chain = train.Sequential([train.layer("conv", 4, activation="relu"), train.layer("max_pool", 2)])
    chain.add(train.layer("flatten")).add(lambda g, x: g.dense(x, 8, activation="relu", name="features"))
    chain.add(train.layer("dense", CLASSES, name="head"))
    assert len(chain) == 5
    model, other = built(chain, batches), built(base_net, batches)
    assert model.weights_sha256() == other.weights_sha256() and model.summary() == other.summary()
    shaped = train.Sequential([train.layer("dense", 2)], input="x", shape=(4,))
    assert built(shaped, None).variable_shape("dense/weights") == (2, 4)


def test_what_is_no_layer_is_refused(batches):
    with pytest.raises(hr.ConfigError, match="there is no layer 'dens'"):
        train.layer("dens", 3)
    with pytest.raises(hr.ConfigError, match="a int is no layer"):
        train.Sequential([3])
    with pytest.raises(hr.ConfigError, match="layer 1 of the Sequential gave a NoneType"):
        built(train.Sequential([train.layer("flatten"), lambda g, x: None]), batches)


# ------------------------------------------------------------------------------------------------- nets from nets


def test_a_net_as_json(batches):
    model = built(base_net, batches)
    again = built(train.net_from_json(model.to_json()), batches)
    assert again.weights_sha256() == model.weights_sha256() and again.to_json() == model.to_json()
    with pytest.raises(hr.ConfigError):
        built(train.net_from_json("{}"), batches)


def test_a_new_head_on_a_saved_net(batches, tmp_path):
    base = built(base_net, batches)
    base.compile(train.adam(1e-2))
    base.fit(batches, verbose=0)
    base.save(tmp_path / "base.safetensors")
    saved = train.restore_model(train.Strategy("cpu:2", announce=False), tmp_path / "base.safetensors")

    def with_new_head(g):
        [features] = g.call_net(saved.to_json(), outputs=["features/relu"])
        return g.dense(features, 5, name="new_head")

    model = built(with_new_head, batches, seed=7)
    copied = model.copy_variables(saved)
    assert copied == ["conv/weights", "conv/bias", "features/weights", "features/bias"]
    model.freeze("conv*")
    model.compile(train.adam(1e-2))
    model.fit(batches, verbose=0)
    for name in copied:
        same = np.array_equal(model.read_variable(name), base.read_variable(name))
        assert same == name.startswith("conv"), name


def test_calls_of_one_net_share_its_variables():
    encoder = built(lambda g: g.dense(g.input("x", (4,)), 2, name="code"), None)

    def twins(g):
        [a] = g.call_net(encoder.to_json(), [g.input("left", (4,))], name="encoder")
        [b] = g.call_net(encoder.to_json(), [g.input("right", (4,))])
        return g.add([a, b])

    assert built(twins, None).variable_names == ["encoder/code/weights", "encoder/code/bias"]


# ------------------------------------------------------------------------------------------------- weights


def write_tensors(path, tensors):
    """A .safetensors file, as PyTorch's users write it."""
    header, payload = {}, b""
    for name, values in tensors.items():
        values = np.asarray(values, np.float32)
        header[name] = {"dtype": "F32", "shape": list(values.shape), "data_offsets": [len(payload), len(payload) + values.nbytes]}
        payload += values.tobytes()
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + payload)
    return path


def torch_tensors():
    rng = np.random.default_rng(1)
    shapes = {"net.0.weight": (4, 1, 3, 3), "net.0.bias": (4,), "net.3.weight": (8, 36), "net.3.bias": (8,),
              "net.5.weight": (CLASSES, 8), "net.5.bias": (CLASSES,)}
    return {name: rng.normal(size=shape) for name, shape in shapes.items()}


NAMES = {"net.0": "conv", "net.3": "features", "net.5": "head"}


def renamed(name):
    module, part = name.rsplit(".", 1)
    return f"{NAMES[module]}.{part}"


def test_weights_by_name(batches, tmp_path):
    tensors = torch_tensors()
    file = write_tensors(tmp_path / "w.safetensors", tensors)
    by_function, by_dict = built(base_net, batches), built(base_net, batches)
    found = by_function.load_weights(file, renamed)
    assert found["loaded"] == by_function.variable_names and found["left_out"] == found["unused"] == []
    by_dict.load_weights(file, {name: renamed(name) for name in tensors})
    assert by_function.weights_sha256() == by_dict.weights_sha256()
    filters = by_function.read_variable("conv/weights")
    assert np.array_equal(filters, tensors["net.0.weight"].transpose(0, 2, 3, 1).astype(np.float32))
    dense = tensors["net.3.weight"].reshape(8, 4, 3, 3).transpose(0, 2, 3, 1).reshape(8, 36)  # pixels channels last
    assert np.array_equal(by_function.read_variable("features/weights"), dense.astype(np.float32))


def test_names_that_do_not_match_are_listed(batches, tmp_path):
    file = write_tensors(tmp_path / "w.safetensors", torch_tensors() | {"extra": [1.0]})
    model = built(base_net, batches)
    before = model.weights_sha256()
    with pytest.raises(hr.DataError) as refused:
        model.load_weights(file, lambda name: name if name.startswith("net.5") or name == "extra" else renamed(name))
    for text in ("'head.weight' or 'head/weights'", "'head.bias'", "extra, net.5.bias, net.5.weight"):
        assert text in refused.value.message
    assert model.weights_sha256() == before
    found = model.load_weights(file, lambda name: None if name.startswith("net.5") else renamed(name) if "." in name else name,
                               strict=False)
    assert found["left_out"] == ["head/weights", "head/bias"] and found["unused"] == ["extra"]
    with pytest.raises(hr.DataError, match="are both renamed to 'conv.bias'"):
        model.load_weights(file, lambda name: "conv.bias")
    with pytest.raises(hr.ConfigError, match="rename gave 3"):
        model.load_weights(file, lambda name: 3)
    with pytest.raises(ZeroDivisionError):
        model.load_weights(file, lambda name: 1 / 0)


def test_convolutions_as_keras_and_pytorch_have_them():
    def shape_of(layer, *arguments, **options):
        model = built(lambda g: getattr(g, layer)(g.input("image", (9, 8, 4)), *arguments, **options), None)
        return model.predict(hr.from_arrays({"image": np.zeros((2, 9, 8, 4), np.float32)}).batch(2)).values.shape[1:]

    assert shape_of("conv", 5, kernel=(3, 3), stride=2, dilation=2) == (5, 4, 5)
    assert shape_of("conv", 5, dilation=(2, 2), padding="valid") == (5, 4, 5)
    assert shape_of("conv", 5, kernel=5, padding=3) == shape_of("conv", 5, kernel=5, padding=(3, 3)) == (11, 10, 5)
    assert shape_of("conv", 5, dilation=3, padding="even", bias=False) == (9, 8, 5)
    assert shape_of("depthwise_conv", multiplier=2, padding=0, dilation=2) == (5, 4, 8)
    assert shape_of("conv_transpose", 5, stride=2) == (18, 16, 5)
    assert shape_of("conv_transpose", 5, stride=2, output_padding=0) == (17, 15, 5)
    assert shape_of("conv_transpose", 5, kernel=4, stride=2, padding=1) == (18, 16, 5)
    assert shape_of("conv_transpose", 5, stride=3, dilation=2, padding=2, output_padding=(2, 2)) == (27, 24, 5)
    assert shape_of("conv", 6, kernel=(1, 7), stride=(2, 1), padding=(0, 3), groups=2) == (5, 8, 6)
    assert shape_of("depthwise_conv", kernel=(3, 1), dilation=(2, 1), padding="valid") == (5, 8, 4)
    assert shape_of("conv_transpose", 6, stride=(1, 2), output_padding=(0, 1), groups=2) == (9, 16, 6)
    assert shape_of("max_pool", (3, 3), stride=(2, 2), padding=1) == (5, 4, 4)
    for layer, arguments, options, text in (
            ("max_pool", [(1, 2)], {}, r"window = \(1, 2\): both axes"),
            ("conv", [5], {"groups": 3}, "3 groups for 4 channels and 5 filters"),
            ("conv", [5], {"kernel": (1, 7), "padding": (0, 1), "dilation": (1, 2)},
             r"kernel \(1, 7\) and dilation \(1, 2\) does not fit"),
            ("conv", [5], {"padding": "full"}, 'padding = "full" is not known'),
            ("conv", [5], {"padding": -1}, "cannot be padded by -1 pixels"),
            ("conv", [5], {"dilation": 0}, "dilation of at least 1, got 0"),
            ("conv", [5], {"dilation": 5, "padding": "valid"}, "kernel 3 and dilation 5 does not fit"),
            ("conv_transpose", [5], {"stride": 2, "output_padding": 2}, "output padding of 2")):
        with pytest.raises(hr.ConfigError, match=text):
            shape_of(layer, *arguments, **options)


def test_pairs_and_groups_are_part_of_a_nets_json():
    def net(**options):
        return lambda g: g.conv(g.input("image", (9, 8, 4)), 6, **options)

    plain = built(net(kernel=(3, 3), stride=(1, 1)), None).to_json()
    assert plain == built(net(), None).to_json() and json.loads(plain)["layers"][1]["attributes"]["kernel"] == 3
    uneven = built(net(kernel=(1, 7), stride=(2, 1), groups=2), None)
    attributes = json.loads(uneven.to_json())["layers"][1]["attributes"]
    assert [attributes[name] for name in ("kernel", "stride", "groups")] == [[1, 7], [2, 1], 2]
    assert uneven.read_variable("conv/weights").shape == (6, 1, 7, 2)
    assert built(train.net_from_json(uneven.to_json()), None).summary() == uneven.summary()


def test_dilations_are_part_of_a_nets_json():
    def net(dilation):
        return lambda g: g.conv(g.input("image", (9, 8, 4)), 5, dilation=dilation, padding=2)

    plain, dilated = (built(net(dilation), None).to_json() for dilation in (1, 2))
    assert [json.loads(text)["layers"][1]["attributes"]["dilation"] for text in (plain, dilated)] == [1, 2]
    assert built(train.net_from_json(dilated), None).to_json() == dilated


PIXELS = 5 * 4 * 6
MIDDLES = {  # ours, PyTorch's
    "dropout": (lambda g, x: g.dropout(x, 0.5), lambda net, x: x),
    "relu": (lambda g, x: g.relu(g.scale(x, 2.0)), lambda net, x: (2 * x).relu()),
    "batch_norm": (lambda g, x: g.batch_norm(x, epsilon=1e-5, name="norm"), lambda net, x: net["norm"](x)),
    "layer_norm": (lambda g, x: g.layer_norm(x, epsilon=1e-5, name="norm"), lambda net, x: net["norm"](x)),
    "add": (lambda g, x: g.add([x, g.tanh(x)]), lambda net, x: x + x.tanh()),
    "softmax": (lambda g, x: g.flatten(g.softmax(x)), lambda net, x: x.softmax(1)),
    "concat": (lambda g, x: g.concat([g.dense(x, 7, name="side"), x]), lambda net, x: net["torch"].cat([net["side"](x), x], 1)),
}


@pytest.mark.parametrize("middle", MIDDLES)
def test_a_net_with_pytorchs_weights_computes_what_pytorch_does(middle, tmp_path):
    torch = pytest.importorskip("torch")
    ours, theirs = MIDDLES[middle]
    torch.manual_seed(1)
    net = {"c": torch.nn.Conv2d(3, 6, 3, padding=1), "side": torch.nn.Linear(PIXELS, 7),
           "norm": (torch.nn.BatchNorm1d if middle == "batch_norm" else torch.nn.LayerNorm)(PIXELS),
           "fc": torch.nn.Linear(PIXELS + (7 if middle == "concat" else 0), CLASSES)}
    used = ["c", "fc"] + [name for name in ("side", "norm") if name in middle or (name, middle) == ("side", "concat")]
    tensors = {f"{name}.{key}": values for name in used for key, values in net[name].state_dict().items() if values.dim() > 0}
    for key in [key for key in tensors if key.startswith("norm.")]:
        tensors[key].copy_(torch.rand(PIXELS) + 0.5)
    images = np.random.default_rng(1).normal(size=(4, 5, 4, 3)).astype(np.float32)
    for layer in net.values():
        layer.eval()
    with torch.no_grad():
        flat = torch.flatten(net["c"](torch.tensor(images.transpose(0, 3, 1, 2))), 1)
        expected = net["fc"](theirs(net | {"torch": torch}, flat)).numpy()
    data = hr.from_arrays({"image": images, "label": np.zeros(4, np.int64)}).batch(4)
    model = built(lambda g: g.dense(ours(g, g.flatten(g.conv(g.input("image"), 6, kernel=3, name="c"))), CLASSES, name="fc"), data)
    model.compile()
    model.load_weights(write_tensors(tmp_path / "w.safetensors", tensors))
    assert np.abs(model.predict(data).values - expected).max() < 1e-5


@pytest.mark.parametrize("shape", [(3, 4, 5), (1, 6, 6), (4, 4, 4)])
def test_images_with_the_channels_first_are_refused(shape, tmp_path):
    torch = pytest.importorskip("torch")
    images, labels = np.random.default_rng(1).random((6, *shape), dtype=np.float32), np.arange(6) % CLASSES
    planes = hr.from_arrays({"image": images, "label": labels}, layout="channels_first")
    turned = planes.map(hr.to_layout("channels_last"))
    for data in (planes, turned.map(hr.to_layout("channels_first"))):
        model = built(lambda g: g.dense(g.flatten(g.conv(g.input("image"), 4)), CLASSES), data)
        model.compile()
        for run in (model.fit, model.evaluate, model.predict):
            with pytest.raises(hr.ConfigError, match=r"'image'.*channels first.*'conv'.*to_layout\(channels_first\) out"):
                run(data.batch(2))
    # Flattened pixels are in the user's order, unless PyTorch's weights were turned to ours.
    flat = built(lambda g: g.dense(g.flatten(g.input("image")), CLASSES, name="fc"), turned)
    first = built(lambda g: g.dense(g.flatten(g.input("image")), CLASSES, name="fc"), planes)
    first.compile()
    first.fit(planes.batch(2), epochs=1, verbose=0)
    net = torch.nn.Linear(int(np.prod(shape)), CLASSES)
    file = write_tensors(tmp_path / "w.safetensors", {f"fc.{key}": values for key, values in net.state_dict().items()})
    with torch.no_grad():
        expected = net(torch.tensor(images).flatten(1)).numpy()
    for model in (flat, first):
        model.load_weights(file)
        model.compile()
    assert np.abs(flat.predict(turned.batch(2)).values - expected).max() < 1e-5
    with pytest.raises(hr.ConfigError, match="layer 'flatten' .*with weights from PyTorch"):
        first.predict(planes.batch(2))
