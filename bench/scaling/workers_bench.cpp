// What a sum over workers costs: the time of Workers::all_reduce_sum() by size, and the latency and bandwidth that
// fit it. Started by a launcher it measures between that launcher's processes, alone it forks --workers of them on
// this host.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "headrace/devices/base/clock.h"
#include "headrace/devices/base/error.h"
#include "headrace/devices/workers.h"

namespace headrace {
namespace {

struct Options {
  int workers = 2;
  double seconds = 0.5;     // for each size
  double step_seconds = 0;  // of work before each sum
  std::size_t max_bytes = std::size_t{64} << 20;
  std::string json;
};

// Times of the calls of one size, in seconds.
struct Row {
  std::size_t bytes = 0;
  std::vector<double> calls = {};  // sorted
  double core_seconds = 0;         // of this process for one call
  double predicted = 0;            // by the fit
  double median() const { return calls[calls.size() / 2]; }
};

// A call takes `fixed` seconds and `per_byte` more for each byte.
struct Line {
  double fixed = 0, per_byte = 0;
};

double core_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

void add(float* __restrict into, const float* __restrict from, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) into[i] += from[i];
}

// A step's work, which leaves its own data in the caches: passes over some megabytes, as many as take the given
// time.
class Work {
 public:
  explicit Work(double seconds) : into_(kFloats, 1.0F), from_(kFloats, 1e-9F) {
    if (seconds <= 0) return;
    constexpr int kTried = 20;
    const Stopwatch clock;
    passes_ = kTried;
    do_it();
    passes_ = std::max(1, static_cast<int>(seconds * kTried / clock.seconds()));
  }

  void do_it() {
    for (int pass = 0; pass < passes_; ++pass) add(into_.data(), from_.data(), kFloats);
  }

 private:
  static constexpr std::size_t kFloats = std::size_t{1} << 19;

  std::vector<float> into_, from_;
  int passes_ = 0;
};

// Returns how many calls fit into the time: the same number on all workers.
int agree_on_calls(Workers& workers, std::span<float> values, double seconds, Work& work) {
  constexpr int kWarm = 4, kMin = 9, kMax = 20'000;
  const Stopwatch clock;
  for (int i = 0; i < kWarm; ++i) {
    work.do_it();
    workers.all_reduce_sum(values);
  }
  int calls = static_cast<int>(std::clamp(seconds * kWarm / clock.seconds(), double{kMin}, double{kMax}));
  workers.broadcast(std::as_writable_bytes(std::span(&calls, 1)), 0);
  return calls;
}

Row time_sums(Workers& workers, std::size_t bytes, double seconds, Work& work) {
  std::vector<float> values(bytes / sizeof(float));
  Row row{.bytes = bytes};
  row.calls.resize(static_cast<std::size_t>(agree_on_calls(workers, values, seconds, work)));
  const double cores = core_seconds();
  for (double& call : row.calls) {
    work.do_it();
    const Stopwatch clock;
    workers.all_reduce_sum(values);
    call = clock.seconds();
  }
  row.core_seconds = (core_seconds() - cores) / static_cast<double>(row.calls.size());
  std::ranges::sort(row.calls);
  return row;
}

std::vector<Row> time_all(Workers& workers, const Options& options) {
  std::vector<Row> rows;
  Work work(options.step_seconds);
  for (std::size_t bytes = sizeof(float); bytes <= options.max_bytes; bytes *= 4) {
    rows.push_back(time_sums(workers, bytes, options.seconds, work));
  }
  return rows;
}

// The smallest sum of squared relative errors: every size counts equally.
Line fit(const std::vector<Row>& rows) {
  double ones = 0, x = 0, xx = 0, y = 0, xy = 0;
  for (const Row& row : rows) {
    const double bytes = static_cast<double>(row.bytes), time = row.median(), weight = 1 / (time * time);
    ones += weight;
    x += weight * bytes;
    xx += weight * bytes * bytes;
    y += weight * time;
    xy += weight * bytes * time;
  }
  const double per_byte = (ones * xy - x * y) / (ones * xx - x * x);
  return {.fixed = (y - per_byte * x) / ones, .per_byte = per_byte};
}

// Returns bytes a second of the faster of a few runs of work over two arrays as large as a bucket.
template <typename Work>
double rate_of(const Work& work) {
  constexpr std::size_t kFloats = std::size_t{1} << 20;
  constexpr int kRuns = 15;
  std::vector<float> into(kFloats, 1.0F), from(kFloats, 2.0F);
  double best = 1e9;
  for (int run = 0; run < kRuns; ++run) {
    const Stopwatch clock;
    work(into.data(), from.data(), kFloats);
    best = std::min(best, clock.seconds());
  }
  volatile float kept = into[kFloats / 2];
  static_cast<void>(kept);
  return static_cast<double>(kFloats * sizeof(float)) / best;
}

void copy(float* __restrict into, const float* __restrict from, std::size_t count) {
  std::memcpy(into, from, count * sizeof(float));
}

// Turns the line of whole calls into the constants of one message, as halving and doubling sends them: 2 log2(n)
// in turn, 2 (n - 1) / n of the bytes. The additions and the two copies of the mesh are known and not the
// network's.
nlohmann::ordered_json constants_of(const Line& line, int workers) {
  const double add_rate = rate_of(add), copy_rate = rate_of(copy);
  const double steps = 2.0 * std::ceil(std::log2(workers)), share = (workers - 1.0) / workers;
  const double network = line.per_byte - share / add_rate - 2 / copy_rate;
  nlohmann::ordered_json constants{{"latency_seconds", line.fixed / steps},
                                   {"bandwidth_bytes_per_second", network > 0 ? 2 * share / network : 0},
                                   {"reduce_bytes_per_second", add_rate},
                                   {"copy_bytes_per_second", copy_rate}};
  return constants;
}

nlohmann::ordered_json results_of(std::vector<Row>& rows, const Workers& workers) {
  const Line line = fit(rows);
  nlohmann::ordered_json sizes = nlohmann::ordered_json::array();
  for (Row& row : rows) {
    row.predicted = line.fixed + line.per_byte * static_cast<double>(row.bytes);
    sizes.push_back({{"bytes", row.bytes},
                     {"calls", row.calls.size()},
                     {"median_seconds", row.median()},
                     {"min_seconds", row.calls.front()},
                     {"p90_seconds", row.calls[row.calls.size() * 9 / 10]},
                     {"core_seconds", row.core_seconds},
                     {"fitted_seconds", row.predicted}});
  }
  const auto large = std::ranges::max_element(rows, {}, &Row::bytes);
  nlohmann::ordered_json result{{"workers", workers.count()}, {"processors", sysconf(_SC_NPROCESSORS_ONLN)}};
  result["call"] = {{"fixed_seconds", line.fixed}, {"seconds_per_byte", line.per_byte}};
  result["constants"] = constants_of(line, workers.count());
  result["constants"]["core_seconds_per_byte"] = large->core_seconds / static_cast<double>(large->bytes);
  result["sizes"] = sizes;
  return result;
}

void print_table(const nlohmann::ordered_json& result) {
  fmt::print("{} workers\n{:>10} {:>7} {:>11} {:>11} {:>11}\n", result["workers"].get<int>(), "bytes", "calls",
             "median us", "min us", "fitted us");
  for (const auto& row : result["sizes"]) {
    fmt::print("{:>10} {:>7} {:>11.1f} {:>11.1f} {:>11.1f}\n", row["bytes"].get<std::size_t>(),
               row["calls"].get<int>(), row["median_seconds"].get<double>() * 1e6,
               row["min_seconds"].get<double>() * 1e6, row["fitted_seconds"].get<double>() * 1e6);
  }
  const auto& constants = result["constants"];
  fmt::print("latency {:.1f} us, bandwidth {:.2f} GB/s, additions {:.1f} GB/s, copies {:.1f} GB/s\n",
             constants["latency_seconds"].get<double>() * 1e6,
             constants["bandwidth_bytes_per_second"].get<double>() * 1e-9,
             constants["reduce_bytes_per_second"].get<double>() * 1e-9,
             constants["copy_bytes_per_second"].get<double>() * 1e-9);
}

void measure(const WorkerPlan& plan, const Options& options) {
  const std::shared_ptr<Workers> workers = open_world(plan);
  share_cores(*workers);  // as `headrace train` does
  std::vector<Row> rows = time_all(*workers, options);
  if (!plan.is_chief()) return;
  const nlohmann::ordered_json result = results_of(rows, *workers);
  if (options.json != "-") print_table(result);
  if (options.json.empty()) return;
  std::ofstream file(options.json == "-" ? "/dev/stdout" : options.json);
  if (!(file << result.dump(2) << "\n")) throw ConfigError("cannot write " + options.json);
}

// Returns a port that nobody has at this moment.
int free_port() {
  const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{.sin_family = AF_INET, .sin_port = 0, .sin_addr = {htonl(INADDR_LOOPBACK)}, .sin_zero = {}};
  socklen_t size = sizeof address;
  const bool bound = ::bind(listener, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
                     ::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size) == 0;
  ::close(listener);
  if (!bound) throw ConfigError("no free port on this host");
  return ntohs(address.sin_port);
}

// Forks before any thread exists. Returns this process's plan.
WorkerPlan fork_workers(int workers, std::vector<pid_t>& children) {
  WorkerPlan plan{.launcher = "fork", .workers = workers, .coordinator = fmt::format("127.0.0.1:{}", free_port())};
  for (int rank = 1; rank < workers; ++rank) {
    const pid_t child = fork();
    if (child < 0) throw ConfigError("cannot fork");
    if (child > 0) {
      children.push_back(child);
      continue;
    }
    children.clear();
    plan.rank = rank;
    break;
  }
  return plan;
}

int run(const Options& options) {
  std::vector<pid_t> children;
  WorkerPlan plan = plan_workers();
  if (plan.alone()) plan = fork_workers(options.workers, children);
  measure(plan, options);
  int failed = 0;
  for (const pid_t child : children) {
    int status = 0;
    if (waitpid(child, &status, 0) < 0 || status != 0) failed = 1;
  }
  return failed;
}

}  // namespace
}  // namespace headrace

int main(int argc, char** argv) {
  headrace::Options options;
  CLI::App program("Times sums over workers and fits latency and bandwidth to them.");
  program.add_option("--workers", options.workers, "processes on this host, unless a launcher started this one")
      ->check(CLI::Range(2, 64));
  program.add_option("--seconds", options.seconds, "for each size")->check(CLI::Range(0.001, 60.0));
  program.add_option("--step-seconds", options.step_seconds, "of work before each sum, as in training")
      ->check(CLI::Range(0.0, 10.0));
  program.add_option("--max-bytes", options.max_bytes, "the largest sum")->check(CLI::Range(4, 1 << 30));
  program.add_option("--json", options.json, "write the results to this file; -: standard output");
  CLI11_PARSE(program, argc, argv);
  setenv("HEADRACE_WORKERS_MODULE", HEADRACE_WORKERS_MODULE, 0);  // that of the build folder
  try {
    return headrace::run(options);
  } catch (const std::exception& error) {
    std::cerr << "workers_bench: " << error.what() << "\n";
    return 1;
  }
}
