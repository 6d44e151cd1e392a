#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>

#include "headrace/devices/base/error.h"
#include "headrace/devices/cuda/cuda_check.h"
#include "headrace/devices/cuda/math/cublaslt_products.h"
#include "headrace/devices/cuda/math/gemm_problem.h"
#include "headrace/devices/cuda/math/own_kernels.h"
#include "headrace/devices/cuda/math/scratch_layout.h"

namespace headrace::cuda {
namespace {

// NVIDIA's recommendation for Hopper; enough for smaller GPUs, too.
constexpr std::size_t kWorkspaceBytes = std::size_t{32} << 20;

cudaDataType_t data_type(DType dtype) { return dtype == DType::kBF16 ? CUDA_R_16BF : CUDA_R_32F; }

cublasOperation_t operation(Transpose transpose) {
  return transpose == Transpose::kYes ? CUBLAS_OP_T : CUBLAS_OP_N;
}

}  // namespace

// cuBLASLt's descriptions of one problem, and the algorithm for it.
struct CublasLtMatmul::Plan {
  Plan() = default;
  ~Plan() {
    for (cublasLtMatrixLayout_t layout : {a, b, d}) {
      if (layout != nullptr) cublasLtMatrixLayoutDestroy(layout);
    }
    if (product != nullptr) cublasLtMatmulDescDestroy(product);
  }
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  cublasStatus_t describe(const GemmProblem& problem);
  // Sets the bias if it is added.
  cublasStatus_t point_to_bias(const void* bias) const {
    if (!adds_bias) return CUBLAS_STATUS_SUCCESS;
    return cublasLtMatmulDescSetAttribute(product, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias);
  }
  cublasStatus_t describe_matrix(cublasLtMatrixLayout_t* layout, DType dtype, std::int64_t rows,
                                 std::int64_t columns, std::int64_t batch, const MatrixSteps& steps);
  // Leaves `found` at 0 if there is no algorithm.
  cublasStatus_t choose(cublasLtHandle_t handle, const GemmProblem& problem, int* found);

  cublasLtMatmulDesc_t product = nullptr;
  cublasLtMatrixLayout_t a = nullptr, b = nullptr, d = nullptr;
  cublasLtMatmulAlgo_t algorithm{};
  bool adds_bias = false;
};

cublasStatus_t CublasLtMatmul::Plan::describe_matrix(cublasLtMatrixLayout_t* layout, DType dtype,
                                                     std::int64_t rows, std::int64_t columns, std::int64_t batch,
                                                     const MatrixSteps& steps) {
  const auto count = static_cast<std::int32_t>(batch);
  const std::int64_t leading = steps.leading == 0 ? rows : steps.leading;
  const std::int64_t stride = steps.batch == 0 ? leading * columns : steps.batch;
  cublasStatus_t status = cublasLtMatrixLayoutCreate(layout, data_type(dtype), static_cast<std::uint64_t>(rows),
                                                     static_cast<std::uint64_t>(columns), leading);
  if (status == CUBLAS_STATUS_SUCCESS) {
    status = cublasLtMatrixLayoutSetAttribute(*layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count);
  }
  if (status == CUBLAS_STATUS_SUCCESS) {
    status = cublasLtMatrixLayoutSetAttribute(*layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride,
                                              sizeof stride);
  }
  return status;
}

cublasStatus_t CublasLtMatmul::Plan::describe(const GemmProblem& problem) {
  adds_bias = problem.bias;
  const bool a_turned = problem.a == Transpose::kYes;
  const bool b_turned = problem.b == Transpose::kYes;
  const cublasOperation_t on_a = operation(problem.a);
  const cublasOperation_t on_b = operation(problem.b);
  const cublasLtEpilogue_t after = adds_bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
  const auto set = [this](cublasLtMatmulDescAttributes_t name, const auto& value) {
    return cublasLtMatmulDescSetAttribute(product, name, &value, sizeof value);
  };
  cublasStatus_t status = cublasLtMatmulDescCreate(&product, CUBLAS_COMPUTE_32F, CUDA_R_32F);
  if (status == CUBLAS_STATUS_SUCCESS) status = set(CUBLASLT_MATMUL_DESC_TRANSA, on_a);
  if (status == CUBLAS_STATUS_SUCCESS) status = set(CUBLASLT_MATMUL_DESC_TRANSB, on_b);
  if (status == CUBLAS_STATUS_SUCCESS) status = set(CUBLASLT_MATMUL_DESC_EPILOGUE, after);
  if (status == CUBLAS_STATUS_SUCCESS && adds_bias) {
    status = set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, data_type(problem.result));
  }
  if (status == CUBLAS_STATUS_SUCCESS) {
    status = describe_matrix(&a, problem.operands, a_turned ? problem.k : problem.m,
                             a_turned ? problem.m : problem.k, problem.batch, problem.a_steps);
  }
  if (status == CUBLAS_STATUS_SUCCESS) {
    status = describe_matrix(&b, problem.operands, b_turned ? problem.n : problem.k,
                             b_turned ? problem.k : problem.n, problem.batch, problem.b_steps);
  }
  if (status == CUBLAS_STATUS_SUCCESS) {
    status = describe_matrix(&d, problem.result, problem.m, problem.n, problem.batch, problem.d_steps);
  }
  return status;
}

cublasStatus_t CublasLtMatmul::Plan::choose(cublasLtHandle_t handle, const GemmProblem& problem, int* found) {
  // Sums in place, or of parts rounded to the result's type, depend on which part comes first, or lose bits.
  const std::uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_NONE | CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
  cublasLtMatmulPreference_t preference = nullptr;
  cublasStatus_t status = cublasLtMatmulPreferenceCreate(&preference);
  const auto set = [&](cublasLtMatmulPreferenceAttributes_t name, const auto& value) {
    if (status == CUBLAS_STATUS_SUCCESS) {
      status = cublasLtMatmulPreferenceSetAttribute(preference, name, &value, sizeof value);
    }
  };
  set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kWorkspaceBytes);
  set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, reductions);
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, problem.align_a);
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, problem.align_b);
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, problem.align_d);
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, problem.align_d);
  if (status == CUBLAS_STATUS_SUCCESS) {
    cublasLtMatmulHeuristicResult_t best{};
    status = cublasLtMatmulAlgoGetHeuristic(handle, product, a, b, d, d, preference, 1, &best, found);
    if (status == CUBLAS_STATUS_SUCCESS && *found > 0) algorithm = best.algo;
  }
  if (preference != nullptr) cublasLtMatmulPreferenceDestroy(preference);
  return status;
}

CublasLtMatmul::CublasLtMatmul(Device& device)
    : ordinal_(device.info().ordinal), device_(device.info().name), scratch_(device) {
  CUDA_CHECK(cudaSetDevice(ordinal_), device_);
  const cublasStatus_t status = cublasLtCreate(&handle_);
  if (status != CUBLAS_STATUS_SUCCESS) {
    throw DeviceError(ErrorCode::kDevice,
                      std::string("cuBLASLt does not start: ") + cublasLtGetStatusString(status), device_,
                      "`headrace doctor` shows its version and the driver's");
  }
}

CublasLtMatmul::~CublasLtMatmul() {
  plans_.clear();
  cublasLtDestroy(handle_);
}

bool CublasLtMatmul::run(cudaStream_t stream, const GemmProblem& problem, const Operands& operands) {
  CUDA_CHECK(cudaSetDevice(ordinal_), device_);
  void* workspace = scratch_.reserve(stream, kWorkspaceBytes);
  const std::lock_guard lock(mutex_);  // also protects the bias pointer, which belongs to the description
  const Plan& plan = plan_for(problem, operands.bias);
  check(plan.point_to_bias(operands.bias), "cublasLtMatmulDescSetAttribute", problem);
  check(cublasLtMatmul(handle_, plan.product, &operands.alpha, operands.a, plan.a, operands.b, plan.b,
                       &operands.beta, operands.c, plan.d, operands.d, plan.d, &plan.algorithm, workspace,
                       kWorkspaceBytes, stream),
        "cublasLtMatmul", problem);
  return plan.adds_bias == problem.bias;
}

// REQUIRES: mutex_ is held.
const CublasLtMatmul::Plan& CublasLtMatmul::plan_for(const GemmProblem& problem, const void* bias) {
  std::unique_ptr<Plan>& plan = plans_[problem];
  if (plan != nullptr) return *plan;
  std::unique_ptr<Plan> made;
  const auto way = way_to_compute(problem, [&](const GemmProblem& asked) {
    made = make_plan(asked, bias);
    return made != nullptr;
  });
  if (!way) {
    throw DeviceError(ErrorCode::kUnsupported, "cuBLASLt has no algorithm for " + to_string(problem), device_,
                      "another precision may have one");
  }
  plan = std::move(made);
  return *plan;
}

// Returns null if there is no algorithm.
std::unique_ptr<CublasLtMatmul::Plan> CublasLtMatmul::make_plan(const GemmProblem& problem, const void* bias) {
  auto made = std::make_unique<Plan>();
  check(made->describe(problem), "cublasLtMatmulDescCreate", problem);
  check(made->point_to_bias(bias), "cublasLtMatmulDescSetAttribute", problem);
  int found = 0;
  const cublasStatus_t status = made->choose(handle_, problem, &found);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED || (status == CUBLAS_STATUS_SUCCESS && found == 0)) return nullptr;
  check(status, "cublasLtMatmulAlgoGetHeuristic", problem);
  return made;
}

void CublasLtMatmul::check(cublasStatus_t status, const char* call, const GemmProblem& problem) const {
  if (status == CUBLAS_STATUS_SUCCESS) [[likely]]
    return;
  throw DeviceError(
      ErrorCode::kDevice,
      std::string("cuBLASLt: ") + cublasLtGetStatusString(status) + " [" + call + "] for " + to_string(problem),
      device_, "see nvidia-smi and the kernel log for the GPU's state");
}

namespace {

// bf16 products give either type; f32 products are written as f32.
GemmProblem with_types(GemmProblem problem, Precision precision, DType wanted) {
  problem.operands = precision == Precision::kBF16 ? DType::kBF16 : DType::kF32;
  problem.result = problem.operands == DType::kF32 ? DType::kF32 : wanted;
  return problem;
}

std::uintptr_t bytes_of(const TensorView& view, std::int64_t elements) {
  return static_cast<std::uintptr_t>(elements) * size_of(view.dtype);
}

// Returns the alignment of the tensor, and of all places in it that are multiples of `step` elements further on.
std::uint32_t alignment(const TensorView& view, std::int64_t step = 0) {
  const auto address = reinterpret_cast<std::uintptr_t>(view.data) | bytes_of(view, step);
  return static_cast<std::uint32_t>(std::uintptr_t{1} << std::min(std::countr_zero(address), 8));
}

void* moved(const TensorView& view, std::int64_t elements) {
  return static_cast<std::byte*>(view.data) + bytes_of(view, elements);
}

constexpr std::uint32_t kBiasAlignment = 16;  // the bytes that epilogues read at once

// The tensor itself, or its place in scratch memory if it has another type or too little alignment.
struct Stage {
  TensorView view;
  bool staged = false;
  std::size_t offset = 0;
};

Stage stage(const TensorView& tensor, DType dtype, std::uint32_t min_alignment, ScratchLayout& layout) {
  Stage result{.view = tensor};
  result.staged = tensor.defined() && (tensor.dtype != dtype || alignment(tensor) < min_alignment);
  if (!result.staged) return result;
  result.view.dtype = dtype;
  result.offset = layout.add(result.view.bytes());
  return result;
}

cudaError_t move(const TensorView& from, const TensorView& to, cudaStream_t stream) {
  if (from.dtype != to.dtype) return convert(from, to, stream);
  return cudaMemcpyAsync(to.data, from.data, from.bytes(), cudaMemcpyDeviceToDevice, stream);
}

}  // namespace

CublasLtDense::CublasLtDense(Device& device)
    : ordinal_(device.info().ordinal), device_(device.info().name), matmul_(device), scratch_(device) {}

// Row-major tensors are their transposes in column-major terms: y' = weights x', and so on.
void CublasLtDense::product(cudaStream_t stream, const kernel::DenseForward& of) {
  const GemmProblem problem{.m = of.weights.shape[0],
                            .n = of.x.shape[0],
                            .k = of.x.shape[1],
                            .a = Transpose::kYes,
                            .bias = of.bias.defined()};
  run(stream, with_types(problem, of.precision, of.y.dtype),
      {.a = of.weights, .b = of.x, .result = of.y, .bias = of.bias});
}

void CublasLtDense::product(cudaStream_t stream, const kernel::DenseBackwardData& of) {
  const GemmProblem problem{.m = of.weights.shape[1], .n = of.dy.shape[0], .k = of.weights.shape[0]};
  run(stream, with_types(problem, of.precision, of.dx.dtype),
      {.a = of.weights, .b = of.dy, .result = of.dx, .bias = {}});
}

void CublasLtDense::product(cudaStream_t stream, const kernel::DenseBackwardWeights& of) {
  const GemmProblem problem{.m = of.x.shape[1], .n = of.dy.shape[1], .k = of.x.shape[0], .b = Transpose::kYes};
  run(stream, with_types(problem, of.precision, of.dweights.dtype),
      {.a = of.x, .b = of.dy, .result = of.dweights, .bias = {}});
}

void CublasLtDense::product(cudaStream_t stream, const kernel::BatchedMatmul& of) {
  const BatchedCalls calls = batched_calls(of.a, of.b, of.result);
  run(stream, with_types(calls.problem, of.precision, of.result.tensor.dtype),
      {.a = of.b.tensor,
       .b = of.a.tensor,
       .result = of.result.tensor,
       .bias = {},
       .alpha = of.alpha,
       .repeats = calls.repeats,
       .a_step = calls.a_step,
       .b_step = calls.b_step,
       .result_step = calls.d_step});
}

void CublasLtDense::run(cudaStream_t stream, GemmProblem problem, const Call& call) {
  CUDA_CHECK(cudaSetDevice(ordinal_), device_);
  ScratchLayout layout;
  Stage a = stage(call.a, problem.operands, 1, layout);
  Stage b = stage(call.b, problem.operands, 1, layout);
  Stage result = stage(call.result, problem.result, 1, layout);
  Stage bias = stage(call.bias, problem.result, kBiasAlignment, layout);
  auto* base = static_cast<std::byte*>(scratch_.reserve(stream, layout.bytes()));
  for (Stage* each : {&a, &b, &result, &bias}) {
    if (each->staged) each->view.data = base + each->offset;
  }
  if (a.staged) CUDA_CHECK(move(call.a, a.view, stream), device_);
  if (b.staged) CUDA_CHECK(move(call.b, b.view, stream), device_);
  if (bias.staged) CUDA_CHECK(move(call.bias, bias.view, stream), device_);

  problem.align_a = alignment(a.view, call.a_step);
  problem.align_b = alignment(b.view, call.b_step);
  problem.align_d = alignment(result.view, call.result_step);
  bool complete = true;
  for (std::int64_t i = 0; i < call.repeats; ++i) {
    void* to = moved(result.view, i * call.result_step);
    complete = matmul_.run(stream, problem,
                           {.a = moved(a.view, i * call.a_step),
                            .b = moved(b.view, i * call.b_step),
                            .c = to,
                            .d = to,
                            .bias = bias.view.data,
                            .alpha = call.alpha,
                            .beta = 0});
  }
  if (!complete) CUDA_CHECK(add_bias(result.view, call.bias, stream), device_);
  if (result.staged) CUDA_CHECK(move(result.view, call.result, stream), device_);
}

}  // namespace headrace::cuda
