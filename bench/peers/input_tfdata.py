#!/usr/bin/env python3
"""Input workloads in tf.data: a pool of N threads, N calls of map at once, order not kept, batches ahead.

Photographs: decode_and_crop_jpeg decodes the drawn window alone, as the documentation recommends. Its accurate
inverse DCT and antialiased bilinear resize are what all others compute; --plain-resize takes TensorFlow's default
instead, which looks at four pixels however much it shrinks: cheaper, other pixels.
CIFAR: vectorised, map after batch: one gather of rows and one of columns a batch.
"""
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import tensorflow as tf

import inputs
import records


def options(opt, ordered=False):
    settings = tf.data.Options()
    settings.threading.private_threadpool_size = opt.threads
    settings.threading.max_intra_op_parallelism = 1
    settings.deterministic = ordered
    return settings


def encoded(data):
    images = records.Records(data)
    return tf.constant([images[i].tobytes() for i in range(len(images))])


def shuffled(opt, count):
    return tf.data.Dataset.range(count).shuffle(count, opt.seed).repeat()


def resize(image, size, opt):
    image = tf.image.resize(image, size, "bilinear", antialias=not opt.plain_resize)
    return tf.cast(tf.clip_by_value(tf.round(image), 0, 255), tf.uint8)


def jpeg_train(opt):
    images = encoded(opt.data)

    def make(i):
        begin, size, _ = tf.image.sample_distorted_bounding_box(
            tf.image.extract_jpeg_shape(images[i]), tf.zeros((1, 0, 4)), area_range=inputs.AREA,
            aspect_ratio_range=inputs.RATIO, max_attempts=10, use_image_if_no_bounding_boxes=True)
        window = tf.stack([begin[0], begin[1], size[0], size[1]])
        image = tf.image.decode_and_crop_jpeg(images[i], window, channels=3, dct_method="INTEGER_ACCURATE")
        return tf.image.random_flip_left_right(resize(image, (inputs.CROP, inputs.CROP), opt))

    data = shuffled(opt, len(images)).map(make, num_parallel_calls=opt.threads)
    return data.batch(opt.batch, drop_remainder=True).prefetch(2).with_options(options(opt))


def jpeg_eval(opt):
    images = encoded(opt.data)

    def make(i):
        image = tf.image.decode_jpeg(images[i], channels=3, dct_method="INTEGER_ACCURATE")
        height, width = tf.shape(image)[0], tf.shape(image)[1]
        short = tf.minimum(height, width)
        height, width = inputs.RESIZE * height // short, inputs.RESIZE * width // short
        image = resize(image, (height, width), opt)
        top, left = (tf.cast(tf.round((side - inputs.CROP) / 2), tf.int32) for side in (height, width))
        return tf.ensure_shape(image[top:top + inputs.CROP, left:left + inputs.CROP], (inputs.CROP, inputs.CROP, 3))

    data = tf.data.Dataset.range(len(images)).repeat().map(make, num_parallel_calls=opt.threads)
    return data.batch(opt.batch, drop_remainder=True).prefetch(2).with_options(options(opt, ordered=True))


def augment(images):
    """(B, 3, 32, 32) uint8 to float32."""
    count, pad = tf.shape(images)[0], inputs.PAD
    images = tf.pad(images, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    along = tf.range(32)[None]
    rows = along + tf.random.uniform((count, 1), 0, 2 * pad + 1, tf.int32)
    flipped = tf.random.uniform((count, 1)) < 0.5
    columns = tf.where(flipped, 31 - along, along) + tf.random.uniform((count, 1), 0, 2 * pad + 1, tf.int32)
    images = tf.gather(images, rows, axis=2, batch_dims=1)
    images = tf.gather(images, columns, axis=3, batch_dims=1)
    scale = [[[1 / (255 * std)]] for std in inputs.CIFAR_STD]
    shift = [[[mean / std]] for mean, std in zip(inputs.CIFAR_MEAN, inputs.CIFAR_STD)]
    return tf.cast(images, tf.float32) * scale - shift


def cifar_train(opt):
    with tf.device("cpu"):
        images = tf.constant(records.pixels(opt.data))
    data = shuffled(opt, len(images)).batch(opt.batch, drop_remainder=True)
    data = data.map(lambda rows: augment(tf.gather(images, rows)), num_parallel_calls=opt.threads)
    return data.prefetch(2).with_options(options(opt))


def cifar_jpeg(opt):
    images = encoded(opt.data)

    def decode(i):
        image = tf.image.decode_jpeg(images[i], channels=3, dct_method="INTEGER_ACCURATE")
        return tf.ensure_shape(image, (32, 32, 3))

    data = shuffled(opt, len(images)).map(decode, num_parallel_calls=opt.threads).batch(opt.batch, drop_remainder=True)
    data = data.map(lambda batch: augment(tf.transpose(batch, (0, 3, 1, 2))), num_parallel_calls=opt.threads)
    return data.prefetch(2).with_options(options(opt))


def more(arg):
    arg.add_argument("--plain-resize", action="store_true", help="without antialiasing, TensorFlow's default")


if __name__ == "__main__":
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    inputs.run("tfdata", f"tensorflow {tf.__version__}", __doc__, {
        "jpeg-train": jpeg_train, "jpeg-eval": jpeg_eval, "cifar-train": cifar_train, "cifar-jpeg": cifar_jpeg}, more)
