"""Fine-tunes on a folder of photographs that holds a folder for each class, JPEG or PNG of any size.

    python finetune_photographs.py --data PHOTOS --weights resnet18.safetensors

The weights are torchvision's, as safetensors.torch.save_file(resnet18(weights="DEFAULT").state_dict(), FILE) writes them;
without them the net starts from random values. Without --data it does nothing. Needs no framework.
"""
import argparse

import headrace as hr
from headrace import train

MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


def finetune(opt):
    photos = hr.open(opt.data)
    normal = hr.normalize(MEAN, STD)
    data = (photos.without_shard(10, 0).decode().shuffle(seed=1)
            .map(hr.random_resized_crop(opt.size), hr.flip(), normal).batch(opt.batch).prefetch(2))
    test = photos.shard(10, 0).decode().map(hr.resize(opt.size * 8 // 7), hr.center_crop(opt.size), normal).batch(opt.batch)
    model = train.Strategy("auto").build(lambda g: g.net("resnet18_imagenet", classes=len(photos.classes)), data=data)
    if opt.weights:
        print("trained from scratch:", model.load_pretrained(opt.weights)["left_out"])
    model.compile(optimizer=train.adamw(train.cosine_decay(1e-3, opt.epochs * len(data))))
    model.fit(data, epochs=opt.epochs, validation=test)
    model.save(opt.save, input=test)  # headrace predict --record FILE --data MORE --out predictions.csv
    print(model.classify(test).confusion_matrix)


if __name__ == "__main__":
    arg = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arg.add_argument("--data")
    arg.add_argument("--weights")
    arg.add_argument("--epochs", type=int, default=5)
    arg.add_argument("--size", type=int, default=224)
    arg.add_argument("--batch", type=int, default=32)
    arg.add_argument("--save", default="photographs.safetensors")
    options = arg.parse_args()
    try:
        finetune(options) if options.data else print("name a folder of photographs: --data PHOTOS")
    except hr.HeadraceError as error:
        raise SystemExit(f"finetune_photographs: {error}") from None
