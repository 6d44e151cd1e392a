// A running plan. headrace/_loader.py gives it the signatures that users see.
#include "headrace/pipeline/loader.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "headrace/bindings/python/batch.h"
#include "headrace/bindings/python/callable.h"
#include "headrace/bindings/python/module.h"
#include "headrace/bindings/python/options.h"
#include "headrace/devices/registry.h"
#include "headrace/pipeline/digest.h"
#include "headrace/pipeline/prefetch_choice.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace headrace::python {
namespace {

constexpr std::chrono::milliseconds kLook{50};  // between two looks for signals

// One thread at a time takes a replica's batches; the others wait here, and look for signals.
class Turn {
 public:
  explicit Turn(std::timed_mutex& mutex) : lock_(mutex, std::defer_lock) {
    while (!lock_.try_lock_for(kLook)) check_signals();
  }

 private:
  std::unique_lock<std::timed_mutex> lock_;
};

// The engine with its devices. Used without the GIL; its end, too.
class Running {
 public:
  // `by_process`: the options' world counts processes with as many devices as this one.
  Running(const Dataset& dataset, const std::string& devices, LoaderOptions options, bool by_process)
      : devices_(std::make_shared<DeviceGroup>(open_devices(devices, DeviceNeed::kMemory))) {
    if (by_process) options.world = options.world.repeated(devices_->size());
    options.while_waiting = check_signals;
    options.owned_batches = true;  // Python keeps what it is given, in lists for example
    loader_ = std::make_unique<Loader>(dataset, *devices_, std::move(options));
    for (int r = 0; r < devices_->size(); ++r) taking_.push_back(std::make_unique<std::timed_mutex>());
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
  ~Running() {
    if (getpid() == process_) return;
    new std::unique_ptr<Loader>(std::move(loader_));  // the threads and locks of both are the parent's
    new std::shared_ptr<DeviceGroup>(std::move(devices_));
  }

  Loader& loader() const noexcept { return *loader_; }
  DeviceGroup& devices() const noexcept { return *devices_; }
  bool is_forked() const noexcept { return getpid() != process_; }

  std::optional<PythonBatch> next(int replica, std::optional<std::uint64_t> epoch) {
    if (replica < 0 || replica >= devices_->size()) {
      throw ConfigError(fmt::format("next({}): there are {} replicas", replica, devices_->size()));
    }
    const Turn mine(*taking_[static_cast<std::size_t>(replica)]);
    std::optional<Batch> batch = loader_->next(replica, epoch);
    if (!batch) return std::nullopt;
    if (batch->device().info().host_memory) batch->ready().wait();
    SharedBatch shared(std::move(*batch), devices_);
    return PythonBatch{.batch = HeldBatch(std::move(shared)), .replica = replica};
  }

 private:
  pid_t process_ = getpid();
  std::shared_ptr<DeviceGroup> devices_;
  std::vector<std::unique_ptr<std::timed_mutex>> taking_;  // by replica
  std::unique_ptr<Loader> loader_;
};

// Threads of the engine that call Python must get the GIL while it ends.
void end(std::shared_ptr<Running> running) {
  const WithoutGil others_run;
  running.reset();
}

class PythonLoader {
 public:
  PythonLoader(const Dataset& dataset, const std::string& devices, const LoaderOptions& options, bool by_process)
      : running_(std::make_shared<Running>(dataset, devices, options, by_process)) {}
  PythonLoader(const PythonLoader&) = delete;
  PythonLoader& operator=(const PythonLoader&) = delete;
  ~PythonLoader() { end(std::move(running_)); }

  // Returns the engine, which the caller keeps for the call even if another thread closes the loader.
  std::shared_ptr<Running> running() const {
    const std::lock_guard lock(mutex_);
    if (running_ == nullptr) throw Error(ErrorCode::kCancelled, "the loader was closed", "make another one");
    return running_;
  }

  // With the GIL.
  void close() {
    std::shared_ptr<Running> last;
    {
      const std::lock_guard lock(mutex_);
      last = std::move(running_);
    }
    if (last == nullptr) return;
    if (!last->is_forked()) last->loader().stop();  // wakes those who wait in next()
    end(std::move(last));
  }

 private:
  mutable std::mutex mutex_;  // never held while Python runs
  std::shared_ptr<Running> running_;
};

// As `headrace digest` prints it: of the rest of the stream, or of the shares of a part of the world.
std::string digest(const PythonLoader& of) {
  const std::shared_ptr<Running> running = of.running();
  const World world = running->loader().world();
  const bool part = world.total != running->devices().size();
  StreamDigest stream(running->devices(), part ? std::optional<int>(world.first) : std::nullopt);
  Sha256 shares;
  auto looked = std::chrono::steady_clock::now();
  while (stream.next(running->loader())) {
    for (const ShareDigest& share : stream.shares()) shares.update(share.sha256);
    if (const auto now = std::chrono::steady_clock::now(); now - looked > kLook) {
      check_signals();
      looked = now;
    }
  }
  return part ? shares.finish_hex() : stream.finish();
}

void make(PythonLoader* place, const Dataset& dataset, const std::string& devices, const nb::dict& given,
          bool by_process) {
  const auto options = read_options<LoaderOptions>(given, "a loader");
  const WithoutGil others_run;
  new (place) PythonLoader(dataset, devices, options, by_process);
}

// Throws what make() would, and starts nothing.
void check(const Dataset& dataset, const std::string& devices, const nb::dict& given) {
  auto options = read_options<LoaderOptions>(given, "a loader");
  options.owned_batches = true;
  const WithoutGil others_run;
  const SignalPoll poll;
  DeviceGroup group = open_devices(devices, DeviceNeed::kMemory);
  choose_prefetch(dataset, group, options);
}

std::vector<std::tuple<std::string, std::string, std::string>> choices(const PythonLoader& of) {
  std::vector<std::tuple<std::string, std::string, std::string>> list;
  for (const Choice& choice : of.running()->loader().choices()) {
    list.emplace_back(choice.what, choice.value, choice.reason);
  }
  return list;
}

}  // namespace

void bind_loader(nb::module_& module) {
  bind_stats(module);
  nb::class_<PythonLoader>(module, "Loader")
      .def("__init__", &make, "dataset"_a, "devices"_a, "options"_a, "by_process"_a)
      .def(
          "next",
          [](const PythonLoader& of, int replica, std::optional<std::uint64_t> epoch) {
            return of.running()->next(replica, epoch);
          },
          "replica"_a = 0, "epoch"_a = nb::none(), Unlocked())
      .def("digest", &digest, Unlocked())
      .def(
          "state", [](const PythonLoader& of) { return of.running()->loader().state().serialize(); }, Unlocked())
      .def(
          "stats", [](const PythonLoader& of) { return of.running()->loader().stats(); }, Unlocked())
      .def("choices", &choices, Unlocked())
      .def(
          "trace", [](const PythonLoader& of) { return of.running()->loader().trace_json(); }, Unlocked())
      .def(
          "steps_per_epoch", [](const PythonLoader& of) { return of.running()->loader().steps_per_epoch(); },
          Unlocked())
      .def(
          "knows_steps", [](const PythonLoader& of) { return of.running()->loader().knows_steps(); }, Unlocked())
      .def(
          "local_rows", [](const PythonLoader& of) { return of.running()->loader().local_rows(); }, Unlocked())
      .def(
          "replicas", [](const PythonLoader& of) { return of.running()->devices().size(); }, Unlocked())
      .def(
          "world",
          [](const PythonLoader& of) {
            const World world = of.running()->loader().world();
            return std::pair(world.total, world.first);
          },
          Unlocked())
      .def(
          "devices", [](const PythonLoader& of) { return of.running()->devices().to_string(); }, Unlocked())
      .def(
          "threads", [](const PythonLoader& of) { return of.running()->loader().threads(); }, Unlocked())
      .def(
          "fields", [](const PythonLoader& of) { return to_tuples(of.running()->loader().fields()); }, Unlocked())
      .def("close", &PythonLoader::close);
  module.def("check_loader", &check, "dataset"_a, "devices"_a, "options"_a);
  module.def("end_of_python", &end_of_python, Unlocked());
}

}  // namespace headrace::python
