// GB/s of what memory bounds: elementwise operations, pooling, views of images.
#include <utility>

#include "headrace/bench/kernels/rows.h"

namespace headrace {
namespace {

void activation(const Target& target, benchmark::State& state, Activation which, Pass pass, DType type) {
  DeviceBench bench(target.device());
  const Shape batch = images_of(target, kSide);
  const TensorView x = bench.random(batch, type), y = bench.random(batch, type), dx = bench.empty(batch, type);
  bench.time(state, [&] {
    if (pass == Pass::kForward) return bench.kernels().activation_forward(bench.stream(), {which, x, y});
    bench.kernels().activation_backward(bench.stream(), {which, x, y, dx});
  });
  count_bytes(state, target, (pass == Pass::kForward ? 2 : 3) * bytes_of(target, type));
}

void max_pool(const Target& target, benchmark::State& state, Pass pass, DType type) {
  DeviceBench bench(target.device());
  const Shape half = images_of(target, kSide / 2);
  const TensorView x = bench.random(images_of(target, kSide), type), y = bench.random(half, type);
  const TensorView argmax = bench.empty(half, DType::kU8);
  bench.time(state, [&] {
    if (pass == Pass::kForward) return bench.kernels().max_pool_forward(bench.stream(), {x, y, argmax, {}});
    bench.kernels().max_pool_backward(bench.stream(), {y, argmax, x, {}});
  });
  count_bytes(state, target, bytes_of(target, type) * 1.25 + bytes_of(target, DType::kU8) * 0.25);
}

void dropout(const Target& target, benchmark::State& state) {
  DeviceBench bench(target.device());
  const TensorView x = bench.random(images_of(target, kSide));
  const StepScalars* scalars = bench.constant(StepScalars{.rows = target.images()});
  bench.time(state, [&] { bench.kernels().dropout(bench.stream(), {x, x, 0.0F, 1, 2, scalars}); });
  count_bytes(state, target, 2 * bytes_of(target, DType::kF32));
}

void scale(const Target& target, benchmark::State& state) {
  DeviceBench bench(target.device());
  const Shape images{512, 32, 32, 3};
  const TensorView x = bench.empty(images, DType::kU8), y = bench.empty(images);
  bench.time(state, [&] { bench.kernels().scale(bench.stream(), {x, y, 1.0F / 255}); });
  count_bytes(state, target, 5.0 * static_cast<double>(images.elements()));
}

// A view a pixel off, as test-time augmentation takes them.
void shift_images(const Target& target, benchmark::State& state, DType type, bool mirror) {
  DeviceBench bench(target.device());
  const Shape images{target.images(), 32, 32, 3};
  const TensorView x = bench.random(images, type), y = bench.empty(images, type);
  bench.time(state, [&] {
    bench.kernels().shift_images(bench.stream(), {x, y, {.down = 1, .right = -1, .mirror = mirror}});
  });
  count_bytes(state, target, 2.0 * static_cast<double>(images.elements()) * static_cast<double>(size_of(type)));
}

void add_of(const Target& target, DType type) {
  for (const Pass pass : {Pass::kForward, Pass::kBackwardData}) {
    const auto named = [&](const char* what) {
      return fmt::format("{}{}/{}", what, suffix_of(type), pass == Pass::kForward ? "forward" : "backward");
    };
    for (const auto& [name, which] :
         {std::pair{"relu", Activation::kRelu}, {"gelu", Activation::kGelu}, {"silu", Activation::kSilu}}) {
      add(named(name),
          [&target, which, pass, type](benchmark::State& state) { activation(target, state, which, pass, type); });
    }
    add(named("max_pool"),
        [&target, pass, type](benchmark::State& state) { max_pool(target, state, pass, type); });
  }
  for (const auto& [name, mirror] : {std::pair{"moved", false}, {"mirrored", true}}) {
    add(fmt::format("shift_images{}/{}", suffix_of(type), name),
        [&target, type, mirror](benchmark::State& state) { shift_images(target, state, type, mirror); });
  }
}

}  // namespace

void add_activations(const Target& target) {
  const DType half = target.device().kernels()->activation_type(Precision::kBF16);
  if (half != DType::kF32) add_of(target, half);
  add_of(target, DType::kF32);
  add("dropout", [&target](benchmark::State& state) { dropout(target, state); });
  add("scale_u8", [&target](benchmark::State& state) { scale(target, state); });
}

}  // namespace headrace
