// The sum of several GPUs in the tree's order (devices/cuda/math/tree_sum.h) among CPU replicas: NCCL's part,
// which carries what one sends to another, is played by copies where all replicas meet. For the twin's devices,
// whose sum_tree is a GPU's.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/shared_module.h"
#include "headrace/devices/collective.h"
#include "headrace/devices/common/backend_module.h"
#include "headrace/devices/cpu/cpu_collective.h"
#include "headrace/devices/cpu/cpu_stream.h"
#include "headrace/devices/cuda/cuda_math.h"
#include "headrace/devices/cuda/math/tree_sum.h"
#include "headrace/devices/kernels.h"
#include "headrace/devices/registry.h"

namespace headrace::test {

class TreeCollective final : public Collective {
 public:
  // A sum takes so much memory on each replica, however large its tensor is.
  TreeCollective(DeviceGroup& devices, std::int64_t scratch_elements)
      : devices_(devices),
        broadcasts_(devices),
        barrier_(devices.size()),
        posted_(static_cast<std::size_t>(devices.size())) {
    for (int r = 0; r < devices.size(); ++r) {
      scratch_.push_back(devices[r].allocate(static_cast<std::size_t>(scratch_elements) * sizeof(float)));
    }
  }

  int local_replicas() const noexcept override { return devices_.size(); }
  void all_reduce_sum(int replica, const TensorView& tensor, Stream& stream) override {
    const Buffer& scratch = scratch_[static_cast<std::size_t>(replica)];
    const TensorView view = scratch.view({static_cast<std::int64_t>(scratch.size() / sizeof(float))}, DType::kF32);
    cuda::TreeSum(replica, local_replicas(), view).submit(tensor, Link{*this, replica, stream});
  }
  void broadcast(int replica, int root, const TensorView& tensor, Stream& stream) override {
    broadcasts_.broadcast(replica, root, tensor, stream);
  }
  void abort(const std::string& reason) noexcept override {
    barrier_.cancel(reason);
    broadcasts_.abort(reason);
  }

 private:
  using Transfers = std::vector<cuda::Transfer>;

  struct Link {
    TreeCollective& owner;
    int replica;
    Stream& stream;

    void exchange(std::span<const cuda::Transfer> outgoing, std::span<const cuda::Transfer> incoming) const {
      static_cast<CpuStream&>(stream).submit(
          [&all = owner, r = replica, out = Transfers(outgoing.begin(), outgoing.end()),
           in = Transfers(incoming.begin(), incoming.end())] { all.meet(r, out, in); });
    }
    void sum(std::span<const TensorView> parts, const TensorView& sum) const {
      owner.devices_[replica].kernels()->sum_tree(stream, {parts, sum});
    }
  };

  void meet(int replica, const Transfers& outgoing, const Transfers& incoming) {
    posted_[static_cast<std::size_t>(replica)] = &outgoing;
    wait(replica);
    for (const cuda::Transfer& to : incoming) receive(replica, to);
    wait(replica);
  }

  void receive(int replica, const cuda::Transfer& to) const {
    const Transfers& sent = *posted_[static_cast<std::size_t>(to.peer)];
    const auto from = std::ranges::find(sent, replica, &cuda::Transfer::peer);
    if (from == sent.end() || from->elements != to.elements)
      throw std::logic_error("nobody sends what is awaited");
    std::memcpy(to.data, from->data, static_cast<std::size_t>(to.elements) * sizeof(float));
  }

  void wait(int replica) {
    if (barrier_.wait()) return;
    throw DeviceError(ErrorCode::kCancelled, "a collective was aborted: " + barrier_.reason(),
                      devices_[replica].info().name);
  }

  DeviceGroup& devices_;
  CpuCollective broadcasts_;
  CpuBarrier barrier_;
  std::vector<const Transfers*> posted_;  // what each sends, while all meet
  std::vector<Buffer> scratch_;
};

// NCCL on whatever devices a test has, also where the backend sums otherwise: on one GPU.

// Of the CUDA backend that the registry has; null where there is none.
inline const CudaMath* cuda_mathematics() {
  std::filesystem::path file;
  for (const Backend* backend : backends()) {
    if (backend->name() == "cuda") file = folder_of_code(backend) / kCudaMathFile;
  }
  if (const char* named = std::getenv("HEADRACE_CUDA_MATH_MODULE"); named != nullptr) file = named;
  const SharedModule module = open_shared_module(file, kCudaMathEntryName);
  return module.entry != nullptr ? reinterpret_cast<CudaMathEntry>(module.entry)(kBackendAbiVersion) : nullptr;
}

inline std::unique_ptr<Collective> create_nccl_collective(DeviceGroup& devices,
                                                          std::shared_ptr<Workers> workers = nullptr) {
  const CudaMath* const mathematics = cuda_mathematics();
  if (mathematics == nullptr) throw ConfigError("the CUDA backend's mathematics is not there");
  return mathematics->create_nccl_collective(devices, std::move(workers));
}

}  // namespace headrace::test
