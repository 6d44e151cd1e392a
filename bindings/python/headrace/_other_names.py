"""What to write for the names of other libraries (torchvision, albumentations, tf.data, Keras, DALI, timm, PyTorch) and of this
one where they stand in the wrong place. Imported when one is met."""

from __future__ import annotations

import importlib
import inspect
import re
from typing import Any

# What follows the colon is this package's; a name is met in any case, with or without "_".
_PARTS = """
RandomHorizontalFlip HorizontalFlip random_flip_left_right Fliplr CoinFlip RandomFlip: flip()
RandomVerticalFlip VerticalFlip random_flip_up_down: vertical_flip()
RandomResizedCrop RandomResizedCropAndInterpolation RandomResizedCropRGBImageDecoder sample_distorted_bounding_box: random_resized_crop(size)
Resize SmallestMaxSize LongestMaxSize Resizing Rescale: resize(size)
CenterCrop CentralCrop central_crop CenterCropRGBImageDecoder crop: center_crop(size)
RandomCrop PadIfNeeded random_crop RandomTranslate resize_with_crop_or_pad: pad_crop(size, pad)
Normalize Normalization crop_mirror_normalize NormalizeImage: normalize(mean, std)
ToTensor ToTensorV2 PILToTensor ToImage Rescaling: normalize([0], [1]), to_layout("channels_first")
ToDtype ConvertImageDtype convert_image_dtype ConvertDtype: cast("float32")
Permute transpose: to_layout("channels_first")
ColorJitter ColorTwist RandomBrightness RandomContrast RandomHue RandomSaturation HueSaturationValue: color_jitter(brightness=..., ...)
RandomBrightnessContrast BrightnessContrast: brightness_contrast(brightness=..., contrast=...)
RandomGrayscale ToGray Grayscale rgb_to_grayscale: grayscale()
GaussianBlur RandomGaussianBlur Blur GaussBlur: gaussian_blur()
RandomRotation Rotate SafeRotate Rotation: random_rotation(degrees)
RandomAffine ShiftScaleRotate Affine RandomTranslation RandomZoom RandomShear WarpAffine: random_affine(degrees)
RandomInvert InvertImg: invert()
RandomPosterize: posterize(bits)
RandomSolarize RandomSolarization: solarize()
RandomAdjustSharpness Sharpen RandomSharpness: adjust_sharpness(factor)
RandomAutocontrast RandomAutoContrast: autocontrast()
RandomEqualize RandomHistogramEqualization: equalize()
RandAugment RandAugmentation rand_augment_transform: rand_augment()
TrivialAugment TrivialAugmentWide: trivial_augment_wide()
RandomErasing CoarseDropout Erase: random_erasing()
CutOut: cutout(size)
MixUp RandomMixup: mixup()
CutMix RandomCutmix: cutmix()
PerImageStandardization: per_image_standardization()
OneHot to_categorical CategoryEncoding LabelSmoothing: one_hot(classes)
AutoAugment AugMix ElasticTransform RandomPerspective Lambda RandomApply RandomChoice: Dataset.map(function), a Python function of the sample
Compose Sequential SequentialOperation: flip() | normalize(mean, std), operations joined by |
ImageFolder DatasetFolder image_dataset_from_directory ImageDataGenerator flow_from_directory WebDataset TFRecordDataset CIFAR10 MNIST FashionMNIST ImageNet Imagenette read_csv read_images: open(path)
from_tensor_slices TensorDataset ArrayDataset from_tensors: from_arrays({"image": images, "label": labels})
IterableDataset from_iterable ExternalSource: from_generator(function)
ConcatDataset ChainDataset: concatenate(first, second)
StackDataset: zip(first, second)
sample_from_datasets choose_from_datasets RandomMix: mix(first, second)
load_dataset from_pandas from_polars DataFrame from_parquet read_parquet read_table: from_arrow(table)
DataLoader StatefulDataLoader default_collate: headrace.torch.DataLoader(data)
DALIGenericIterator as_numpy_iterator make_one_shot_iterator MultiEpochsDataLoader: Loader(data)
random_split train_test_split: Dataset.without_shard(10, 0) and Dataset.shard(10, 0)
Subset SubsetRandomSampler index_select: Dataset.select(indices)
WeightedRandomSampler RandomSampler BatchSampler DistributedSampler: headrace.torch.DataLoader(data, sampler=...)
from_numpy from_dict from_list: from_arrays({"image": images, "label": labels})
set_seed manual_seed seed_everything: Dataset.shuffle(seed) and Loader(data, seed=...)
apply map_fn map_dataset with_transform set_transform: Dataset.map(...)
padded batched collate: Dataset.batch(global_batch)
bucket_by_sequence_length: Dataset.bucket_by_length(field, boundaries, batch_sizes)
cardinality num_examples size: len(data), or Dataset.records
element_spec output_shapes features: Dataset.fields
class_names class_to_idx int2str: Dataset.classes
with_options options: options of Loader()
AUTOTUNE: nothing: threads are chosen
get_single_element first head: next(iter(data))
set_epoch: nothing: each iteration is the next epoch
Adam AdamOptimizer FusedAdam adam_optimizer: train.adam()
AdamW: train.adamw()
SGD Momentum GradientDescentOptimizer: train.sgd(learning_rate, momentum=0.9)
Muon: train.muon()
RMSprop Adagrad Adadelta Adamax Nadam Ftrl Lion LAMB LARS: train.custom_optimizer(...), an update rule in Python
CrossEntropyLoss SparseCategoricalCrossentropy cross_entropy: train.sparse_categorical_crossentropy()
CategoricalCrossentropy SoftTargetCrossEntropy: train.categorical_crossentropy()
BCEWithLogitsLoss binary_cross_entropy_with_logits: train.binary_crossentropy(from_logits=True)
BCELoss BinaryCrossentropy binary_cross_entropy: train.binary_crossentropy()
MSELoss mse_loss mse MeanSquaredError l2: train.mean_squared_error()
L1Loss l1_loss mae MeanAbsoluteError l1: train.mean_absolute_error()
HuberLoss SmoothL1Loss smooth_l1_loss: train.huber()
KLDivLoss KLDivergence kld: train.kl_divergence()
HingeEmbeddingLoss: train.hinge()
CosineEmbeddingLoss: train.cosine_similarity()
acc SparseCategoricalAccuracy CategoricalAccuracy: train.accuracy()
TopKCategoricalAccuracy SparseTopKCategoricalAccuracy top_k_accuracy: train.top_k(5)
AUROC ROCAUC: train.auc()
F1 F1Score: train.f1_score()
ModelCheckpoint BackupAndRestore checkpoint: train.Checkpoints(folder), as Model.fit(checkpoints=...)
EarlyStopping: train.early_stopping()
ReduceLROnPlateau: train.reduce_lr_on_plateau()
LearningRateScheduler LambdaLR: train.learning_rate_scheduler(function)
CosineAnnealingLR CosineDecay: train.cosine_decay(...)
ExponentialLR ExponentialDecay: train.exponential_decay(...)
PiecewiseConstantDecay MultiStepLR StepLR: train.piecewise(...)
OneCycleLR: train.one_cycle(...)
LinearLR PolynomialDecay LinearWarmup warmup: train.warm_up(...)
TensorBoard SummaryWriter: train.tensorboard(folder)
CSVLogger: train.csv_logger(file)
MirroredStrategy DistributedDataParallel DataParallel MultiWorkerMirroredStrategy: train.Strategy(devices)
GradientTape: train.Trainer(model)
load_model load_state_dict_from_url: train.restore_model(strategy, file)
train_on_batch training_step: train.Trainer(model)
fit_generator: Model.fit(data)
state_dict: Model.save(file) and Model.load_weights(file)
save_weights save_model: Model.save(file)
get_weights named_parameters parameters trainable_variables weights: Model.variable_names and Model.read_variable(name)
set_weights: Model.write_variable(name, values)
count_params: Model.parameter_count
history: what Model.fit() returns
Linear Dense: Graph.dense(x, units)
Conv2D Conv2d: Graph.conv(x, filters)
MaxPool2d MaxPooling2D: Graph.max_pool(x)
AvgPool2d AveragePooling2D: Graph.average_pool(x)
BatchNorm2d BatchNormalization: Graph.batch_norm(x)
LayerNormalization: Graph.layer_norm(x)
"""
# Options: the first that the call has; what is no name is said where it has none of them.
_OPTIONS = """
validation_data val_data valid_data eval_data: validation, evaluate(data)
validation_steps: leave it out; Dataset.take(n) of the validation data says how many batches
batch_size batchsize: global_batch, data.batch(global_batch) says it
x y inputs targets: data, a Dataset has both: from_arrays({"image": x, "label": y}).batch(32)
shuffle: data.shuffle(seed) says it
num_epochs n_epochs max_epochs nb_epoch epoch: epochs
initial_epoch: resume
lr: learning_rate
weight_decay_rate wd: weight_decay
betas: beta1, beta1= and beta2=
beta_1: beta1
beta_2: beta2
eps: epsilon
clipnorm max_grad_norm: clip_norm
clipvalue: clip_value
gradient_accumulation_steps accumulate_grad_batches steps_per_execution: accumulate
workers num_workers num_threads num_parallel_calls n_jobs thread: threads, LoaderOptions: Loader(data, threads=n)
use_multiprocessing multiprocessing_context: leave it out; there are threads
persistent_workers pin_memory: leave it out; threads and memory stay
buffer_size prefetch_factor: prefetch, shuffle(seed) permutes all records and needs no buffer
drop_last: drop_remainder
reshuffle_each_iteration: reshuffle_each_epoch
random_state random_seed: seed
num_shards shards world_size: count, world
shard_index rank: index, world
deterministic: in_order
image_size target_size output_size: size
shape: size
padding_mode: padding
kernel_size: kernel
strides: stride
pool_size: window
p prob: probability
scale: area
value fill_value: fill
n num_samples num_records: records, count
num_classes n_classes: classes
name_fn fn f func map_func transform: function, operations are given by position
directory root file filename path_or_file: path
subset: split
device: devices
dtype precision_policy: precision
"""
_LIBRARIES = ("torchvision", "albumentations", "tensorflow", "keras", "torch", "timm", "nvidia", "ffcv", "webdataset", "sklearn", "torchmetrics")


def _plain(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()


def _table(text: str) -> dict[str, str]:
    rows = (line.split(": ", 1) for line in text.strip().splitlines())
    return {_plain(name): said for names, said in rows for name in names.split()}


PARTS, OPTIONS = _table(_PARTS), _table(_OPTIONS)


def answer(value: Any) -> str:
    """What to write in place of a name, of another library's object, or of a function of this one that was not called. ""
    where nothing is known."""
    if isinstance(value, str):
        return _own(value) or PARTS.get(_plain(value), "")
    kind = value if isinstance(value, type) or inspect.isroutine(value) else type(value)
    if (getattr(kind, "__module__", None) or "").startswith("headrace"):
        return _own(kind.__name__) if kind is value else ""
    return PARTS.get(_plain(kind.__name__), "") if library_of(value) else ""


def library_of(value: Any) -> str:
    """The other library that an object, a class or a function is of; "" of the user's own."""
    kind = value if isinstance(value, type) or inspect.isroutine(value) else type(value)
    module = (getattr(kind, "__module__", None) or "").split(".")[0]
    return module if module in _LIBRARIES else ""


def _own(name: str) -> str:
    for module, prefix in (("headrace", "headrace"), ("headrace.train", "train")):
        try:
            own = importlib.import_module(module)
        except ImportError:  # a build of the input engine alone
            continue
        if name in own.__all__ and inspect.isroutine(getattr(own, name)):
            return f"{prefix}.{name}()"
    return ""


def keyword(name: str, known: list[str]) -> str:
    """What to write in place of an option that a call has not: "validation"."""
    said = OPTIONS.get(_plain(name), "").split(", ")
    own = next((each for each in said if each in known), "")
    rest = ", ".join(each for each in said if not re.fullmatch(r"[a-z_0-9]*", each))
    return f"{name}: {own or rest}" if own or rest else ""
