#include "headrace/devices/workers/mpi/mpi_mesh.h"

#include <mpi.h>

#include <chrono>
#include <cstdlib>
#include <future>
#include <memory>
#include <stdexcept>
#include <thread>
#include <utility>

#include "headrace/devices/base/clock.h"

namespace headrace {
namespace {

constexpr auto kLook = std::chrono::milliseconds(2);
constexpr double kFinalizeSeconds = 5;

std::atomic<bool> abandoned{false};
std::atomic<int> uses{0};

// Runs `call` on a thread of its own. Returns a future of what it returned: a call that never returns keeps nobody
// from leaving.
std::future<int> call_beside(int (*call)()) {
  auto done = std::make_shared<std::promise<int>>();
  std::future<int> result = done->get_future();
  std::thread([done, call] { done->set_value(call()); }).detach();
  return result;
}

int initialize() {
  int provided = 0;
  return MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided);
}

// Runs when the process exits.
void finalize_in_order() {
  int finalized = 0;
  MPI_Finalized(&finalized);
  if (finalized != 0 || abandoned || uses > 0) return;
  call_beside([] { return MPI_Finalize(); }).wait_for(std::chrono::duration<double>(kFinalizeSeconds));
}

// Returns why it failed; empty if it did not.
std::string initialize_within(double timeout_seconds, const std::atomic<bool>& stop) {
  const Stopwatch waited;
  std::future<int> initialized = call_beside(initialize);
  while (initialized.wait_for(kLook) != std::future_status::ready) {
    if (!stop && waited.seconds() < timeout_seconds) continue;
    abandon_mpi();
    throw std::runtime_error("MPI_Init_thread() did not return");
  }
  if (const int error = initialized.get(); error != MPI_SUCCESS) {
    return "MPI_Init_thread() fails: " + mpi_error_text(error);
  }
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  std::atexit(finalize_in_order);
  return {};
}

// Returns "Open MPI v4.1.4", the first part of a long text.
std::string library_name() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  int length = 0;
  MPI_Get_library_version(text, &length);
  const std::string whole(text);
  return whole.substr(0, whole.find_first_of(",\n"));
}

}  // namespace

std::string mpi_error_text(int error) {
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  MPI_Error_string(error, text, &length);
  return text;
}

MpiPlace start_mpi(double timeout_seconds, const std::atomic<bool>& stop) {
  int initialized = 0, finalized = 0, provided = 0;
  MPI_Finalized(&finalized);
  if (finalized != 0) return {.why_not = "MPI was finalized in this process"};
  if (abandoned) return {.why_not = "a worker of an earlier world of this process failed"};
  MPI_Initialized(&initialized);
  if (initialized == 0) {
    std::string why_not = initialize_within(timeout_seconds, stop);
    if (!why_not.empty()) return {.why_not = std::move(why_not)};
  }
  MPI_Query_thread(&provided);
  if (provided < MPI_THREAD_SERIALIZED) return {.why_not = "MPI was initialized without MPI_THREAD_SERIALIZED"};
  MpiPlace place{.library = library_name()};
  MPI_Comm_rank(MPI_COMM_WORLD, &place.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &place.workers);
  return place;
}

void abandon_mpi() noexcept { abandoned = true; }

bool mpi_is_usable() noexcept {
  int finalized = 0;
  MPI_Finalized(&finalized);
  return finalized == 0 && !abandoned;
}

MpiUse::MpiUse() noexcept { ++uses; }

MpiUse::~MpiUse() { --uses; }

}  // namespace headrace
