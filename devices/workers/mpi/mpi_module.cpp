// The module's entry point.
#include "headrace/devices/workers/mpi/mpi_mesh.h"

namespace headrace {
namespace {

class MpiOfThisSystem final : public MpiModule {
 public:
  MpiPlace start(double timeout_seconds, const std::atomic<bool>& stop) const override {
    return start_mpi(timeout_seconds, stop);
  }
  std::unique_ptr<Mesh> connect(double timeout_seconds, const std::atomic<bool>& stop) const override {
    return std::make_unique<MpiMesh>(timeout_seconds, stop);
  }
  void abandon() const noexcept override { abandon_mpi(); }
};

}  // namespace
}  // namespace headrace

extern "C" __attribute__((visibility("default"))) const headrace::MpiModule* headrace_mpi(int abi_version) {
  static const headrace::MpiOfThisSystem module;
  return abi_version == headrace::kMpiAbiVersion ? &module : nullptr;
}
