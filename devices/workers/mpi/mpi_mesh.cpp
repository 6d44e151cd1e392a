#include "headrace/devices/workers/mpi/mpi_mesh.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <thread>

#include "headrace/devices/base/clock.h"

namespace headrace {
namespace {

constexpr std::size_t kMaxRequestFloats = std::size_t{1} << 26;  // per request: MPI counts in an int
constexpr std::size_t kMaxRequestBytes = std::size_t{1} << 26;
constexpr std::size_t kMaxGathered = std::size_t{1} << 14;  // floats of all workers that one request gathers

constexpr std::uint64_t kSpinNs = 50'000, kYieldNs = 2'000'000;
constexpr auto kSleep = std::chrono::microseconds(50);

void check(int error, const char* call) {
  if (error != MPI_SUCCESS) throw std::runtime_error(fmt::format("{}(): {}", call, mpi_error_text(error)));
}

// MPI moves messages only while it is asked for them: at first in a loop, then with less of a processor's time.
void pause(std::uint64_t waited_ns) {
  if (waited_ns < kSpinNs) return;
  if (waited_ns < kYieldNs) {
    std::this_thread::yield();
  } else {
    std::this_thread::sleep_for(kSleep);
  }
}

// Sums `workers` rows of `count` values as one tree into the first row.
void sum_tree(float* rows, std::size_t workers, std::size_t count) {
  for (std::size_t stride = 1; stride < workers; stride *= 2) {
    for (std::size_t row = 0; row + stride < workers; row += 2 * stride) {
      float* sum = rows + row * count;
      const float* other = rows + (row + stride) * count;
      for (std::size_t i = 0; i < count; ++i) sum[i] += other[i];
    }
  }
}

template <typename T>
void grow(std::vector<T>& buffer, std::size_t count) {
  if (buffer.size() < count) buffer.resize(count);
}

}  // namespace

MpiMesh::MpiMesh(double timeout_seconds, const std::atomic<bool>& stop) : timeout_seconds_(timeout_seconds) {
  MPI_Request request = MPI_REQUEST_NULL;
  try {
    check(MPI_Comm_idup(MPI_COMM_WORLD, &world_, &request), "MPI_Comm_idup");
    wait(request, stop);
  } catch (...) {
    abandon_mpi();
    throw;
  }
  MPI_Comm_set_errhandler(world_, MPI_ERRORS_RETURN);
  MPI_Comm_rank(world_, &rank_);
  MPI_Comm_size(world_, &workers_);
}

MpiMesh::~MpiMesh() {
  if (!aborted_ && mpi_is_usable()) MPI_Comm_free(&world_);
}

void MpiMesh::require_usable() const {
  if (aborted_ || !buffers_) throw std::runtime_error("the world failed");
}

void MpiMesh::all_reduce_sum(float* values, std::size_t count) {
  require_usable();
  for (std::size_t begin = 0; begin < count; begin += kMaxRequestFloats) {
    const std::size_t part = std::min(kMaxRequestFloats, count - begin);
    grow(buffers_->values, part);
    std::memcpy(buffers_->values.data(), values + begin, part * sizeof(float));
    try {
      part* static_cast<std::size_t>(workers_) <= kMaxGathered ? sum_whole(part) : sum_slices(part);
    } catch (...) {
      give_up();
      throw;
    }
    std::memcpy(values + begin, buffers_->values.data(), part * sizeof(float));
  }
}

// Every worker gets all values and sums them.
void MpiMesh::sum_whole(std::size_t count) {
  Buffers& buffers = *buffers_;
  const auto workers = static_cast<std::size_t>(workers_);
  grow(buffers.parts, count * workers);
  MPI_Request request = MPI_REQUEST_NULL;
  const int size = static_cast<int>(count);
  check(MPI_Iallgather(buffers.values.data(), size, MPI_FLOAT, buffers.parts.data(), size, MPI_FLOAT, world_,
                       &request),
        "MPI_Iallgather");
  wait(request, aborted_);
  sum_tree(buffers.parts.data(), workers, count);
  std::memcpy(buffers.values.data(), buffers.parts.data(), count * sizeof(float));
}

// Every worker gets all values of its slice, sums them and sends the sums to the others.
void MpiMesh::sum_slices(std::size_t count) {
  divide(count);
  Buffers& buffers = *buffers_;
  MPI_Request request = MPI_REQUEST_NULL;
  check(MPI_Ialltoallv(buffers.values.data(), buffers.slices.data(), buffers.slice_begins.data(), MPI_FLOAT,
                       buffers.parts.data(), buffers.shares.data(), buffers.share_begins.data(), MPI_FLOAT, world_,
                       &request),
        "MPI_Ialltoallv");
  wait(request, aborted_);
  const int mine = buffers.slices[static_cast<std::size_t>(rank_)];
  sum_tree(buffers.parts.data(), static_cast<std::size_t>(workers_), static_cast<std::size_t>(mine));
  check(MPI_Iallgatherv(buffers.parts.data(), mine, MPI_FLOAT, buffers.values.data(), buffers.slices.data(),
                        buffers.slice_begins.data(), MPI_FLOAT, world_, &request),
        "MPI_Iallgatherv");
  wait(request, aborted_);
}

void MpiMesh::divide(std::size_t count) {
  Buffers& buffers = *buffers_;
  const auto workers = static_cast<std::size_t>(workers_);
  for (auto* each : {&buffers.slices, &buffers.slice_begins, &buffers.shares, &buffers.share_begins}) {
    each->resize(workers);
  }
  for (std::size_t rank = 0; rank < workers; ++rank) {
    const std::size_t begin = rank * count / workers, end = (rank + 1) * count / workers;
    buffers.slice_begins[rank] = static_cast<int>(begin);
    buffers.slices[rank] = static_cast<int>(end - begin);
  }
  const int mine = buffers.slices[static_cast<std::size_t>(rank_)];
  for (std::size_t rank = 0; rank < workers; ++rank) {
    buffers.shares[rank] = mine;
    buffers.share_begins[rank] = static_cast<int>(rank) * mine;
  }
  grow(buffers.parts, workers * static_cast<std::size_t>(mine));
}

void MpiMesh::broadcast(std::byte* bytes, std::size_t count, int root) {
  require_usable();
  for (std::size_t begin = 0; begin < count; begin += kMaxRequestBytes) {
    const std::size_t part = std::min(kMaxRequestBytes, count - begin);
    grow(buffers_->values, (part + sizeof(float) - 1) / sizeof(float));
    std::memcpy(buffers_->values.data(), bytes + begin, part);
    try {
      MPI_Request request = MPI_REQUEST_NULL;
      check(MPI_Ibcast(buffers_->values.data(), static_cast<int>(part), MPI_BYTE, root, world_, &request),
            "MPI_Ibcast");
      wait(request, aborted_);
    } catch (...) {
      give_up();
      throw;
    }
    std::memcpy(bytes + begin, buffers_->values.data(), part);
  }
}

void MpiMesh::wait(MPI_Request& request, const std::atomic<bool>& stop) const {
  const Stopwatch waited;
  for (;;) {
    if (stop) throw std::runtime_error("the world failed");
    int done = 0;
    check(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
    if (done != 0) return;
    const std::uint64_t nanoseconds = waited.nanoseconds();
    if (static_cast<double>(nanoseconds) * 1e-9 > timeout_seconds_) {
      throw std::runtime_error(fmt::format("MPI moved nothing for {:g} s", timeout_seconds_));
    }
    pause(nanoseconds);
  }
}

void MpiMesh::abort() noexcept {
  aborted_ = true;
  abandon_mpi();
}

// The open request may still write the buffers: they stay until the process ends.
void MpiMesh::give_up() noexcept {
  abort();
  [[maybe_unused]] const Buffers* left = buffers_.release();
}

}  // namespace headrace
