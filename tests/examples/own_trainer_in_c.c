// The input engine in front of a training loop in plain C: softmax regression on Fashion-MNIST by stochastic
// gradient descent. A save in the middle of the second epoch and a loader that goes on from it change nothing.
//   example_own_trainer_in_c [DATA]
//
// Prints: ^prefetch\(batches=4\)
// Prints: ^epoch 1: loss [0-9.]+, accuracy 0\.[0-9]+, [0-9]+ examples
// Prints: ^to go on from here: headrace-loader-2 [0-9a-f]+ [0-9]+ [0-9]+ [0-9a-f]+$
// Prints: ^epoch 3: loss 0\.[0-9]+, accuracy (0\.[89][0-9]+|1\.0+), [0-9]+ examples
#include <headrace/headrace.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { kPixels = 28 * 28, kClasses = 10, kEpochs = 3 };

// Ends the program with what was wrong and what to do next.
static void want(hr_status status) {
  if (status == HR_OK) return;
  fprintf(stderr, "%s\n", hr_last_error()->what);
  exit(1);
}

typedef struct Progress {
  double loss;
  int64_t correct, examples;
} Progress;

// One step over a batch; `images` and `labels` have `rows` rows.
static void step(float* weights, const float* images, const int64_t* labels, int64_t rows, Progress* progress) {
  static float gradients[kPixels * kClasses];
  for (int w = 0; w < kPixels * kClasses; ++w) gradients[w] = 0;
  for (int64_t i = 0; i < rows; ++i) {
    const float* image = images + i * kPixels;
    float scores[kClasses] = {0}, max = 0, sum = 0;
    int best = 0;
    for (int p = 0; p < kPixels; ++p) {
      for (int c = 0; c < kClasses; ++c) scores[c] += image[p] * weights[p * kClasses + c];
    }
    for (int c = 1; c < kClasses; ++c) best = scores[c] > scores[best] ? c : best;
    max = scores[best];
    for (int c = 0; c < kClasses; ++c) sum += scores[c] = expf(scores[c] - max);
    progress->correct += best == labels[i];
    progress->loss -= log((double)(scores[labels[i]] / sum));
    for (int c = 0; c < kClasses; ++c) scores[c] = scores[c] / sum - (c == labels[i] ? 1.0F : 0.0F);
    for (int p = 0; p < kPixels; ++p) {
      for (int c = 0; c < kClasses; ++c) gradients[p * kClasses + c] += image[p] * scores[c];
    }
  }
  for (int w = 0; w < kPixels * kClasses; ++w) weights[w] -= 0.01F / (float)rows * gradients[w];
  progress->examples += rows;
}

static hr_dataset* plan_of(const char* data) {
  hr_dataset* plan = NULL;
  want(hr_dataset_open(data, NULL, &plan));
  want(hr_dataset_add(plan, "shuffle", "{\"seed\": 7}", NULL));
  want(hr_dataset_add(plan, "map", "[{\"normalize\": {\"mean\": [0.5], \"std\": [0.5]}}]", NULL));
  want(hr_dataset_add(plan, "batch", "{\"global_batch\": 64}", NULL));
  want(hr_dataset_add(plan, "prefetch", "{\"batches\": 4}", NULL));
  return plan;
}

static void print_plan(const hr_dataset* plan) {
  char* text = NULL;
  want(hr_dataset_explain(plan, NULL, &text));
  printf("%s\n", text);
  hr_string_free(text);
}

// Opens a loader that goes on from a state; an empty one is the beginning.
static hr_loader* open_loader(const hr_dataset* plan, const char* state) {
  hr_devices* devices = NULL;
  hr_loader* loader = NULL;
  char options[512];
  snprintf(options, sizeof options, "{\"epochs\": %d, \"start\": \"%s\"}", kEpochs, state);
  want(hr_devices_open("cpu", &devices));
  want(hr_loader_open(plan, devices, options, NULL, &loader));
  hr_devices_free(devices);
  return loader;
}

// Another loader that stands where this one stood.
static hr_loader* save_and_restore(hr_loader* loader, const hr_dataset* plan) {
  char* state = NULL;
  want(hr_loader_state(loader, &state));
  printf("to go on from here: %s\n", state);
  hr_loader_free(loader);
  hr_loader* restored = open_loader(plan, state);
  hr_string_free(state);
  return restored;
}

int main(int argc, char** argv) {
  static float weights[kPixels * kClasses];
  hr_dataset* plan = plan_of(argc > 1 ? argv[1] : "/usr/share/datasets/fashion-mnist");
  print_plan(plan);
  hr_loader* loader = open_loader(plan, "");
  hr_batch* batch = NULL;
  Progress progress = {0};
  for (want(hr_loader_next(loader, 0, &batch)); batch != NULL; want(hr_loader_next(loader, 0, &batch))) {
    hr_batch_info info = HR_BATCH_INFO_INIT;
    hr_tensor images = HR_TENSOR_INIT, labels = HR_TENSOR_INIT;
    want(hr_batch_describe(batch, &info));
    want(hr_batch_tensor(batch, "image", &images));
    want(hr_batch_tensor(batch, "label", &labels));
    want(hr_batch_wait(batch));
    step(weights, images.data, labels.data, info.examples, &progress);
    hr_batch_free(batch);
    if (info.epoch == 1 && info.step == 10) loader = save_and_restore(loader, plan);
    if (!info.last_of_epoch) continue;
    printf("epoch %d: loss %.4f, accuracy %.4f, %lld examples\n", (int)info.epoch + 1,
           progress.loss / (double)progress.examples, (double)progress.correct / (double)progress.examples,
           (long long)progress.examples);
    progress = (Progress){0};
  }
  hr_loader_free(loader);
  hr_dataset_free(plan);
  return 0;
}
