// Runs a fuzz target over its seeds and a number of mutations of them, the same ones every time:
//   fuzz_X [--inputs 2000] [--seed 1] [--first 0]
//   fuzz_X --write-seeds FOLDER     a corpus to start libFuzzer with
//   fuzz_X FILE ...                 these inputs alone
// Exit status 0 where every input was parsed or refused; a finding is named by the options that bring it back.
#include <fmt/format.h>
#include <sys/resource.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "headrace/devices/base/clock.h"
#include "headrace/devices/base/error.h"
#include "headrace/devices/base/file.h"
#include "headrace/tests/fuzz/fuzz_target.h"
#include "headrace/tests/fuzz/mutator.h"

// A sanitizer that ends the process calls it first; not there without one.
extern "C" void __sanitizer_set_death_callback(void (*callback)()) __attribute__((weak));

namespace headrace::fuzz {
namespace {

constexpr double kSecondsAnInput = 20;         // on a slow machine under a sanitizer
constexpr long kKilobytes = 3L * 1024 * 1024;  // resident, with a sanitizer's own

std::string current;  // the input that is being run, for whoever looks after a crash

void name_current() { std::fprintf(stderr, "fuzz: while running %s\n", current.c_str()); }

extern "C" void on_crash(int signal) {
  name_current();
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

// False for a finding.
bool run_one(const std::string& name, std::span<const std::byte> input) {
  current = name;
  const Stopwatch watch;
  try {
    run(input);
  } catch (const Error&) {
    // refused, as it should be
  } catch (const std::exception& error) {
    std::fprintf(stderr, "fuzz: %s: %s\n", name.c_str(), error.what());
    return false;
  }
  struct rusage use {};
  getrusage(RUSAGE_SELF, &use);
  if (watch.seconds() < kSecondsAnInput && use.ru_maxrss < kKilobytes) return true;
  std::fprintf(stderr, "fuzz: %s took %.1f s and %ld kB\n", name.c_str(), watch.seconds(), use.ru_maxrss);
  return false;
}

int write_seeds(const std::string& folder) {
  const std::vector<test::Bytes> all = seeds();
  for (std::size_t i = 0; i < all.size(); ++i) {
    write_file_atomically(std::filesystem::path(folder) / fmt::format("seed{}", i), all[i]);
  }
  return EXIT_SUCCESS;
}

int run_files(const std::vector<std::string>& files) {
  for (const std::string& file : files) {
    if (!run_one(file, read_whole_file(file))) return EXIT_FAILURE;
  }
  return EXIT_SUCCESS;
}

// Sound inputs must be parsed; every second mutation has its checksums made right.
int run_mutations(std::uint64_t first, std::uint64_t inputs, std::uint64_t seed) {
  const std::vector<test::Bytes> sound = seeds();
  for (std::size_t i = 0; i < sound.size(); ++i) {
    current = fmt::format("seed {}", i);
    run(sound[i]);
  }
  const Mutator mutator(sound, seed);
  for (std::uint64_t number = first; number < first + inputs; ++number) {
    test::Bytes input = mutator.input(number);
    if (number % 2 == 1) repair(input);
    if (!run_one(fmt::format("--seed {} --first {} --inputs 1", seed, number), input)) return EXIT_FAILURE;
  }
  std::printf("%zu seeds, %llu mutations: no finding\n", sound.size(), static_cast<unsigned long long>(inputs));
  return EXIT_SUCCESS;
}

int fuzz(int argc, char** argv) {
  for (const int signal : {SIGSEGV, SIGABRT, SIGBUS, SIGFPE}) std::signal(signal, on_crash);
  if (__sanitizer_set_death_callback != nullptr) __sanitizer_set_death_callback(name_current);
  std::uint64_t inputs = 2000, seed = 1, first = 0;
  std::vector<std::string> files;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const char* value = i + 1 < argc ? argv[i + 1] : "";
    if (word == "--write-seeds") return write_seeds(value);
    std::uint64_t* number = word == "--inputs"  ? &inputs
                            : word == "--seed"  ? &seed
                            : word == "--first" ? &first
                                                : nullptr;
    if (number == nullptr) {
      files.push_back(word);
      continue;
    }
    *number = std::strtoull(value, nullptr, 10);
    ++i;
  }
  return files.empty() ? run_mutations(first, inputs, seed) : run_files(files);
}

}  // namespace
}  // namespace headrace::fuzz

int main(int argc, char** argv) {
  try {
    return headrace::fuzz::fuzz(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "fuzz: a sound input was refused: %s\n", error.what());
    return EXIT_FAILURE;
  }
}
