#include "headrace/bindings/python/module.h"
#include "headrace/bindings/python/options.h"

#include <fmt/format.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <cstdlib>
#include <future>
#include <thread>
#include <utility>

#include "headrace/bindings/python/callable.h"
#include "headrace/devices/base/error.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace headrace::python {
namespace {

constexpr std::chrono::milliseconds kLookForSignals{50};

// Waits without the interpreter's lock. What a signal's handler raises ends the wait, after `give_up`.
template <typename Result>
Result wait_for(std::future<Result> given, const std::function<void()>& give_up) {
  const WithoutGil others_run;
  std::future<Result> result = std::move(given);  // which may wait for its thread, too
  while (result.wait_for(kLookForSignals) != std::future_status::ready) {
    try {
      check_signals();
    } catch (...) {
      give_up();
      throw;
    }
  }
  return result.get();
}

// Calls function(Workers&), which waits for other workers, on a thread of its own.
template <typename Function>
auto call_all(const PythonWorkers& workers, const Function& function) {
  Workers& joined = *workers.get();
  return wait_for(std::async(std::launch::async, [&joined, &function] { return function(joined); }),
                  [&joined] { joined.abort("interrupted"); });
}

// An interrupted attempt goes on by itself, until all have joined or the time is over.
WorkersPtr join_world(const WorkerPlan& plan, const WorkerOptions& options) {
  if (plan.alone()) return nullptr;
  std::packaged_task<std::shared_ptr<Workers>()> join([plan, options] { return open_world(plan, options); });
  std::future<std::shared_ptr<Workers>> joined = join.get_future();
  std::thread(std::move(join)).detach();
  return std::make_shared<PythonWorkers>(wait_for(std::move(joined), [] {}));
}

WorkersPtr join_launched(bool cores, const nb::dict& options) {
  WorkersPtr workers = join_world(plan_workers(), read_options<WorkerOptions>(options, "open_world()"));
  if (!workers || !cores) return workers;
  const WithoutGil others_run;
  share_cores(*workers->get());  // of this thread
  return workers;
}

std::vector<nb::bytes> all_gather(const PythonWorkers& workers, const nb::bytes& mine) {
  const std::string_view bytes(mine.c_str(), mine.size());
  std::vector<nb::bytes> all;
  for (const std::string& one : call_all(workers, [bytes](Workers& joined) { return joined.all_gather(bytes); })) {
    all.emplace_back(one.data(), one.size());
  }
  return all;
}

WorkerInfo info_of(const PythonWorkers& workers, int rank) {
  const Workers& joined = *workers.get();
  if (rank < 0 || rank >= joined.count()) {
    throw ConfigError(fmt::format("at({}): there are {} workers", rank, joined.count()), "ranks count from 0");
  }
  return joined.at(rank);
}

std::string text_of_workers(const PythonWorkers& workers) {
  const Workers& joined = *workers.get();
  return fmt::format("<headrace.Workers: {} of {}>", joined.at(joined.rank()).to_string(joined.rank()),
                     joined.count());
}

std::string text_of_plan(const WorkerPlan& plan) {
  if (plan.facts.empty()) return "a process that runs alone";
  std::string text;
  for (const WorkerFact& fact : plan.facts) {
    text += fmt::format("{}{}: {} ({})", text.empty() ? "" : "\n", fact.name, fact.value, fact.from);
  }
  return text;
}

void bind_plan(nb::module_& module) {
  nb::class_<WorkerFact>(module, "WorkerFact", "One value of a plan, and the variable or rule that it comes from.")
      .def_ro("name", &WorkerFact::name)
      .def_ro("value", &WorkerFact::value)
      .def_ro("origin", &WorkerFact::from)
      .def("__repr__", [](const WorkerFact& fact) {
        return fmt::format("<headrace.WorkerFact {}: {} ({})>", fact.name, fact.value, fact.from);
      });
  nb::class_<WorkerPlan>(
      module, "WorkerPlan",
      "How this process joins the others, read only from its environment. str() lists the facts.")
      .def_ro("launcher", &WorkerPlan::launcher, "\"torchrun\"; empty for a process that runs alone.")
      .def_ro("rank", &WorkerPlan::rank)
      .def_ro("count", &WorkerPlan::workers, "Of all workers.")
      .def_ro("local_rank", &WorkerPlan::local_rank,
              "Among the processes of this host; -1 if the launcher does not say.")
      .def_ro("local_count", &WorkerPlan::local_workers,
              "Processes of this host; -1 if the launcher does not say.")
      .def_ro("coordinator", &WorkerPlan::coordinator,
              "\"host:port\", where worker 0 listens; empty for a process that runs alone.")
      .def_ro("facts", &WorkerPlan::facts)
      .def_prop_ro("is_chief", &WorkerPlan::is_chief)
      .def("__str__", &text_of_plan)
      .def("__repr__", [](const WorkerPlan& plan) {
        return fmt::format("<headrace.WorkerPlan: worker {} of {}>", plan.rank, plan.workers);
      });
  module.def(
      "plan_workers", [] { return plan_workers(std::getenv); },
      "Reads TF_CONFIG, the variables of torchrun, MPI launchers, Slurm and Kubernetes, and HEADRACE_COORDINATOR, "
      "which names worker 0's address whatever the launcher. Opens nothing. Raises ConfigError naming the "
      "variable "
      "that is missing or wrong.");
  module.def("place_worker", [] {
    const WorkerPlan plan = place_worker();
    return std::pair(plan.workers, plan.rank);
  });
}

}  // namespace

PythonWorkers::~PythonWorkers() {
  if (getpid() != process_) {
    new std::shared_ptr<Workers>(std::move(workers_));  // its connections and threads are the parent's
    return;
  }
  const WithoutGil others_run;
  workers_.reset();
}

const std::shared_ptr<Workers>& PythonWorkers::get() const {
  if (getpid() == process_) return workers_;
  throw ConfigError("a forked process is no worker of its own",
                    "call the workers in the process that joined them");
}

void bind_workers(nb::module_& module) {
  bind_plan(module);
  nb::class_<WorkerInfo>(module, "WorkerInfo", "A worker as it introduced itself.")
      .def_ro("host", &WorkerInfo::host)
      .def_ro("process", &WorkerInfo::process)
      .def("__repr__", [](const WorkerInfo& info) {
        return fmt::format("<headrace.WorkerInfo: {}, process {}>", info.host, info.process);
      });
  nb::class_<PythonWorkers>(
      module, "Workers", nb::is_weak_referenceable(),
      "The processes that train together, made by open_world(). All make the same calls in the same order. A call "
      "raises DeviceError naming the worker that was lost or is late, with its host; every later call raises it "
      "again.")
      .def_prop_ro("rank", [](const PythonWorkers& workers) { return workers.get()->rank(); })
      .def_prop_ro(
          "count", [](const PythonWorkers& workers) { return workers.get()->count(); }, "Of all workers.")
      .def_prop_ro(
          "is_chief", [](const PythonWorkers& workers) { return workers.get()->rank() == 0; },
          "Whether this worker writes checkpoints, logs and reports.")
      .def("at", &info_of, "rank"_a, "Host and process of a worker.")
      .def("all_gather", &all_gather, "mine"_a, "Every worker's bytes, by rank. All workers make the call.")
      .def(
          "devices",
          [](const PythonWorkers& workers, const std::string& spec) {
            return call_all(workers, [&spec](Workers& joined) { return devices_of_worker(spec, &joined); });
          },
          "spec"_a = "auto",
          "This worker's part of the devices: \"auto\" and \"cuda\" are divided among the workers of one host, "
          "others "
          "are each worker's own. All workers make the call.")
      .def(
          "abort", [](const PythonWorkers& workers, const std::string& reason) { workers.get()->abort(reason); },
          "reason"_a, nb::call_guard<WithoutGil>(),
          "Fails this worker's calls, now and later, and those of all others, which are told the reason.")
      .def(
          "sign_off", [](const PythonWorkers& workers) { workers.get()->sign_off(); },
          nb::call_guard<WithoutGil>(),
          "Says that this worker makes no further calls, and waits up to ten seconds for the others to say so. "
          "One "
          "that waits for this worker's part in a call ends at once. Done at the program's end, too.")
      .def("__repr__", &text_of_workers);
  module.def("open_world", &join_launched, "share_cores"_a, "options"_a,
             nb::sig("def open_world(share_cores: bool, options: dict[str, object]) -> Workers | None"));
  bind_typed_dict(module, "WorkerOptions", list_options(WorkerOptions()));
}

}  // namespace headrace::python
