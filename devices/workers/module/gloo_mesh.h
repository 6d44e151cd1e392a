// Connections from every worker to every other, and Gloo's collectives over them.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/devices/workers/mesh.h"

namespace gloo {
template <typename T>
class AllreduceHalvingDoubling;
}  // namespace gloo

namespace headrace {

// Values go through buffers of the mesh: Gloo registers memory when an algorithm is made, and all workers must
// make theirs in one order.
class GlooMesh final : public Mesh {
 public:
  // Returns every worker's bytes, by rank.
  using Gather = std::function<std::vector<std::string>(std::string_view)>;

  // The others reach this host at `address`.
  GlooMesh(int rank, int workers, const std::string& address, double timeout_seconds);
  ~GlooMesh() override;
  GlooMesh(const GlooMesh&) = delete;
  GlooMesh& operator=(const GlooMesh&) = delete;

  // Connects to the others; abort() ends it, too. REQUIRES: called once, first.
  void connect(const Gather& gather);

  void all_reduce_sum(float* values, std::size_t count) override;
  void broadcast(std::byte* bytes, std::size_t count, int root) override;
  void abort() noexcept override;

 private:
  class Connections;
  struct Sum;

  Sum& sum_of(std::size_t count);
  void sum_part(float* values, std::size_t count);

  std::shared_ptr<Connections> context_;
  std::map<std::size_t, std::unique_ptr<Sum>> sums_;  // by count
  std::uint64_t uses_ = 0;
};

}  // namespace headrace
