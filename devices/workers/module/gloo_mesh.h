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

namespace gloo {
class Context;
template <typename T>
class AllreduceHalvingDoubling;
}  // namespace gloo

namespace headrace {

// Values go through buffers of the mesh: Gloo registers memory when an algorithm is made, and all workers must
// make theirs in one order. One thread, except for abort().
class GlooMesh {
 public:
  // Returns every worker's bytes, by rank.
  using Gather = std::function<std::vector<std::string>(std::string_view)>;

  // Connects to the others, which reach this host at `address`. Throws gloo::Exception.
  GlooMesh(int rank, int workers, const std::string& address, double timeout_seconds, const Gather& gather);
  ~GlooMesh();
  GlooMesh(const GlooMesh&) = delete;
  GlooMesh& operator=(const GlooMesh&) = delete;

  // Sums in place. After a call that threw, every call throws. Throws gloo::Exception.
  void all_reduce_sum(float* values, std::size_t count);
  void broadcast(std::byte* bytes, std::size_t count, int root);

  // Makes the waiting call and all later ones throw. Thread-safe.
  void abort() noexcept;

 private:
  struct Sum;

  Sum& sum_of(std::size_t count);
  void sum_part(float* values, std::size_t count);

  std::shared_ptr<gloo::Context> context_;
  std::map<std::size_t, std::unique_ptr<Sum>> sums_;  // by count
  std::uint64_t uses_ = 0;
};

}  // namespace headrace
