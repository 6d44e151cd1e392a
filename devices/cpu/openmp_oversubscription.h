// Makes waiting OpenMP threads sleep almost at once. Private to the CPU backend.
#pragma once

#include <atomic>
#include <thread>

namespace headrace {

// libgomp's threads spin for milliseconds before they sleep; but where a process has more OpenMP threads than
// processors they spin only 100 times, some microseconds (libgomp's manual, GOMP_SPINCOUNT). While one of these
// lives, the process has: it holds as many more threads as there are processors, asleep.
class OpenMpOversubscription {
 public:
  OpenMpOversubscription() : host_([this] { stand_by(); }) {}
  ~OpenMpOversubscription();
  OpenMpOversubscription(const OpenMpOversubscription&) = delete;
  OpenMpOversubscription& operator=(const OpenMpOversubscription&) = delete;

 private:
  void stand_by();

  std::atomic<int> present_{0};
  std::atomic<bool> dismissed_{false};
  std::thread host_;
};

}  // namespace headrace
