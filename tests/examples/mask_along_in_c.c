// A mask that moves with its image, in plain C: a custom operation makes the mask, `masks` lets what crops and
// mirrors the image do the same to it. The program checks that every mask still fits.
//   example_mask_along_in_c [DATA]
//
// Prints: ^([1-9][0-9]*) of \1 masks fit their images$
#include <headrace/headrace.h>
#include <stdio.h>
#include <stdlib.h>

enum { kSide = 28, kPixels = kSide * kSide };

// Ends the program with what was wrong and what to do next.
static void want(hr_status status) {
  if (status == HR_OK) return;
  fprintf(stderr, "%s\n", hr_last_error()->what);
  exit(1);
}

static unsigned char mask_of(unsigned char pixel) { return pixel >= 128 ? 1 : 0; }

// Several threads call it at once.
static hr_status make_mask(void* user, hr_sample* sample) {
  (void)user;
  const void* image = NULL;
  void* mask = NULL;
  size_t image_bytes = 0, mask_bytes = 0;
  hr_status status = hr_sample_input(sample, "image", &image, &image_bytes, NULL, NULL);
  if (status == HR_OK) status = hr_sample_output(sample, "mask", &mask, &mask_bytes);
  if (status != HR_OK) return status;
  for (size_t i = 0; i < mask_bytes; ++i) ((unsigned char*)mask)[i] = mask_of(((const unsigned char*)image)[i]);
  return HR_OK;
}

// The mask is made first; then both are cropped and mirrored alike.
static void add_mask(hr_dataset* plan) {
  const hr_field mask = {.name = "mask", .dtype = HR_U8, .rank = 3, .shape = {kSide, kSide, 1}};
  hr_parts* parts = NULL;
  want(hr_parts_create(&parts));
  want(hr_parts_add_operation(parts, "{\"name\": \"threshold\"}", &mask, 1, make_mask, (hr_user){NULL, NULL}));
  want(hr_dataset_add(
      plan, "map",
      "[{\"named\": \"threshold\"}, {\"pad_crop\": {\"size\": 28, \"pad\": 4, \"masks\": [\"mask\"]}},"
      " {\"flip\": {\"masks\": [\"mask\"]}}]",
      parts));
  hr_parts_free(parts);
}

static int fits(const unsigned char* image, const unsigned char* mask) {
  for (int i = 0; i < kPixels; ++i) {
    if (mask[i] != mask_of(image[i])) return 0;
  }
  return 1;
}

int main(int argc, char** argv) {
  hr_dataset* plan = NULL;
  hr_devices* devices = NULL;
  hr_loader* loader = NULL;
  hr_batch* batch = NULL;
  long long rows = 0, right = 0;
  want(hr_dataset_open(argc > 1 ? argv[1] : "/usr/share/datasets/fashion-mnist", NULL, &plan));
  add_mask(plan);
  want(hr_dataset_add(plan, "batch", NULL, NULL));
  want(hr_devices_open("cpu:1", &devices));
  want(hr_loader_open(plan, devices, NULL, NULL, &loader));
  for (want(hr_loader_next(loader, 0, &batch)); batch != NULL; want(hr_loader_next(loader, 0, &batch))) {
    hr_batch_info info = HR_BATCH_INFO_INIT;
    hr_tensor images = HR_TENSOR_INIT, masks = HR_TENSOR_INIT;
    want(hr_batch_describe(batch, &info));
    want(hr_batch_tensor(batch, "image", &images));
    want(hr_batch_tensor(batch, "mask", &masks));
    want(hr_batch_wait(batch));
    for (int64_t i = 0; i < info.examples; ++i, ++rows) {
      right +=
          fits((const unsigned char*)images.data + i * kPixels, (const unsigned char*)masks.data + i * kPixels);
    }
    hr_batch_free(batch);
  }
  printf("%lld of %lld masks fit their images\n", right, rows);
  hr_loader_free(loader);
  hr_devices_free(devices);
  hr_dataset_free(plan);
  return right == rows ? 0 : 1;
}
