#include "headrace/devices/cuda/math/cuda_muon.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "headrace/devices/base/error.h"
#include "headrace/devices/cuda/cuda_check.h"
#include "headrace/devices/cuda/math/scratch_layout.h"

namespace headrace::cuda {
namespace {

MuonBatch::Matrix described(const MuonMatrix& matrix, MuonRate rate) {
  const TensorView& w = matrix.parameters;
  const auto fits = [&](const TensorView& view) {
    return view.defined() && view.dtype == DType::kF32 && view.shape == w.shape;
  };
  if (w.shape.rank() < 2 || w.elements() == 0 || !fits(w) || !fits(matrix.gradients) || !fits(matrix.velocity)) {
    throw ConfigError(
        "muon: parameters, gradients and velocity must be float32 of one shape with at least two "
        "axes, not " +
        w.shape.to_string());
  }
  const std::int64_t outputs = w.shape[0], inputs = w.elements() / outputs;
  return {.parameters = w.as<float>(),
          .rounded = reinterpret_cast<__nv_bfloat16*>(matrix.rounded.as<BFloat16>()),
          .gradients = matrix.gradients.as<const float>(),
          .velocity = matrix.velocity.as<float>(),
          .shape = {.outputs = outputs, .inputs = inputs},
          .rate_factor = muon_rate_factor(rate, outputs, inputs)};
}

MuonBatch batch_of(std::span<const MuonMatrix> matrices, const MuonOptions& options) {
  MuonBatch batch{};
  for (const MuonMatrix& matrix : matrices) {
    MuonBatch::Matrix& place = batch.matrices[batch.count++];
    place = described(matrix, options.adjust_rate);
    batch.extent = widened(batch.extent, place.shape);
  }
  batch.momentum = options.momentum;
  batch.nesterov = options.nesterov;
  batch.normalize = options.normalize;
  batch.epsilon = options.epsilon;
  batch.weight_decay = options.weight_decay;
  batch.group = options.group;
  return batch;
}

}  // namespace

CudaMuon::CudaMuon(Device& device)
    : ordinal_(device.info().ordinal), device_(device.info().name), matmul_(device), scratch_(device) {}

void CudaMuon::update(cudaStream_t stream, const kernel::Muon& of) {
  CUDA_CHECK(cudaSetDevice(ordinal_), device_);
  for (std::span<const MuonMatrix> left = of.matrices; !left.empty();) {
    const std::size_t count = std::min<std::size_t>(left.size(), kMaxMuonBatch);
    MuonBatch batch = batch_of(left.first(count), of.options);
    update_batch(stream, batch, of.options, of.scalars);
    left = left.subspan(count);
  }
}

void CudaMuon::update_batch(cudaStream_t stream, MuonBatch& batch, const MuonOptions& options,
                            const StepScalars* scalars) {
  const auto count = static_cast<std::size_t>(batch.count);
  const std::size_t matrix_bytes =
      count * static_cast<std::size_t>(batch.extent.elements()) * sizeof(__nv_bfloat16);
  const std::size_t square_bytes =
      count * static_cast<std::size_t>(batch.extent.rows * batch.extent.rows) * sizeof(__nv_bfloat16);
  ScratchLayout layout;
  const std::size_t partial_norms = layout.add(count * kMuonBlocks * 2 * sizeof(double));
  const std::size_t scales = layout.add(count * 2 * sizeof(float));
  const std::size_t x = layout.add(matrix_bytes);
  const std::size_t other = layout.add(matrix_bytes);
  const std::size_t a = layout.add(square_bytes);
  const std::size_t polynomial = layout.add(square_bytes);
  auto* base = static_cast<std::byte*>(scratch_.reserve(stream, layout.bytes()));
  const auto halves = [base](std::size_t offset) { return reinterpret_cast<__nv_bfloat16*>(base + offset); };
  batch.partial_norms = reinterpret_cast<double*>(base + partial_norms);
  batch.scales = reinterpret_cast<float*>(base + scales);
  batch.x = halves(x);

  CUDA_CHECK(muon_momentum(batch, scalars, stream), device_);
  CUDA_CHECK(muon_norms(batch, scalars, stream), device_);
  CUDA_CHECK(muon_load(batch, stream), device_);
  iterate(stream, batch, options, halves(other), halves(a), halves(polynomial));
  CUDA_CHECK(muon_apply(batch, scalars, stream), device_);
}

// A row-major X (R, C) is a column-major C x R matrix; A and the polynomial are symmetric.
void CudaMuon::iterate(cudaStream_t stream, MuonBatch& batch, const MuonOptions& options, __nv_bfloat16* other,
                       __nv_bfloat16* a, __nv_bfloat16* polynomial) {
  const std::int64_t rows = batch.extent.rows;
  const std::int64_t columns = batch.extent.columns;
  const GemmProblem common{.operands = DType::kBF16, .result = DType::kBF16, .batch = batch.count};
  GemmProblem gram = common;  // A = X X'
  gram.m = gram.n = rows;
  gram.k = columns;
  gram.a = Transpose::kYes;
  GemmProblem square = common;  // b A + c A A
  square.m = square.n = square.k = rows;
  GemmProblem product = common;  // a X + (b A + c A A) X
  product.m = columns;
  product.n = product.k = rows;

  for (int i = 0; i < options.iterations; ++i) {
    const __nv_bfloat16* x = batch.x;
    matmul_.run(stream, gram, {.a = x, .b = x, .c = a, .d = a, .bias = nullptr, .alpha = 1, .beta = 0});
    matmul_.run(stream, square,
                {.a = a, .b = a, .c = a, .d = polynomial, .bias = nullptr, .alpha = options.c, .beta = options.b});
    matmul_.run(stream, product,
                {.a = x, .b = polynomial, .c = x, .d = other, .bias = nullptr, .alpha = 1, .beta = options.a});
    std::swap(batch.x, other);
  }
}

}  // namespace headrace::cuda
