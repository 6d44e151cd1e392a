// Chooses the numbers of threads by trials while the stream runs, from the rate at which consumers take batches.
// The numbers only limit how many may run, so a trial costs nothing; the stream of batches does not depend on
// them.
#pragma once

#include <string>

namespace headrace {

// Measurements of one setting over a short time.
struct TuningWindow {
  double examples_per_second = 0;  // handed out
  double stalled = 0;              // share of the time that consumers waited
  double compute_waits = 0;        // share of the compute threads' time
  double readers_busy = 0;         // share of the readers' time in Source::read
};

struct TuningLimits {
  int threads = 1;      // initial and maximum number
  int min_threads = 1;  // equal to `threads`: nothing is tried
  int readers = 0;      // initial number; 0: none
  int min_readers = 1;
  int max_readers = 0;   // equal to min_readers: nothing is tried
  bool decodes = false;  // devices can decode some of the rows
};

// Tunes readers first: doubles them while compute threads wait for busy readers and the rate rises, and reduces
// them if they idle. Then tunes compute threads: steps down from all of them, halving the step at each refusal;
// keeps a smaller number if the rate stays within 4 % of the best, or if consumers do not wait: then the rate is
// theirs. Each candidate is measured twice, in turn with the number kept so far. Then shares rows to decode with
// the devices: more while consumers wait for all compute threads and the rate does not fall, fewer once they do
// not wait, since the devices have other work.
class Autotuner {
 public:
  explicit Autotuner(const TuningLimits& limits);

  // Returns the number to run with until the next observe().
  int threads() const noexcept { return threads_; }
  int readers() const noexcept { return readers_; }
  // Returns how many of kWholeShare rows devices decode, where they can.
  static constexpr int kWholeShare = 256;
  int device_share() const noexcept { return share_; }
  bool decodes() const noexcept { return limits_.decodes; }
  // Returns whether the trials are over.
  bool settled() const noexcept { return phase_ == Phase::kSettled && share_ == kept_share_; }

  void observe(const TuningWindow& window);

  const std::string& threads_reason() const noexcept { return threads_reason_; }
  const std::string& readers_reason() const noexcept { return readers_reason_; }
  const std::string& decoding_reason() const noexcept { return decoding_reason_; }

 private:
  enum class Phase { kReaders, kReaderTrial, kThreads, kSettled };

  void look_at_readers(const TuningWindow& window);
  void judge_readers(const TuningWindow& window);
  void begin_threads();
  void next_candidate();
  void try_threads(const TuningWindow& window);
  void judge_threads();
  void watch(const TuningWindow& window);
  void share_decoding(const TuningWindow& window);

  TuningLimits limits_;
  Phase phase_ = Phase::kReaders;
  int threads_, readers_;
  std::string threads_reason_, readers_reason_, decoding_reason_ = "to start with";

  double base_rate_ = 0;  // with kept_readers_
  int kept_readers_ = 0;

  int kept_ = 0, candidate_ = 0, step_ = 0;
  int windows_ = 0;                            // measured for this candidate, in turn with the kept number
  double candidate_rate_ = 0, kept_rate_ = 0;  // sums
  double candidate_stalled_ = 0;               // maximum over its windows
  double loss_ = 1;                            // of the kept number against the best one
  std::string refused_;
  int share_ = 0, kept_share_ = 0;
  bool fell_ = false;      // the share, when it last changed
  int patience_ = 0;       // windows before the share may fall
  double share_rate_ = 0;  // with kept_share_
  double stalled_sum_ = 0;
  int observed_ = 0;
};

}  // namespace headrace
