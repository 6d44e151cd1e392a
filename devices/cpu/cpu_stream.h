// A CPU stream: one worker thread that runs closures in order. Private to the CPU backend.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "headrace/devices/cpu/cpu_captured_work.h"
#include "headrace/devices/stream.h"

namespace headrace {

// Work inside it may use `threads` OpenMP threads. Like every Stream, used by one host thread at a time.
class CpuStream : public Stream {
 public:
  CpuStream(Device& device, int threads);
  ~CpuStream() override;
  CpuStream(const CpuStream&) = delete;
  CpuStream& operator=(const CpuStream&) = delete;

  Device& device() const noexcept override { return device_; }

  void synchronize() override;
  void record(Event& event) override;
  void wait(const Event& event) override;
  void follow(Stream& other) override;
  Buffer allocate(std::size_t bytes) override;
  void copy(void* to, const void* from, std::size_t bytes) override;
  void fill(void* to, unsigned char value, std::size_t bytes) override;
  void call(std::function<void()> function) override;
  void begin_capture() override;
  std::unique_ptr<CapturedWork> end_capture() override;
  void launch(CapturedWork& work) override;
  void release(void* data, std::size_t bytes, MemoryPlace place) noexcept override;

  // Runs `work` in stream order, or records it while capturing. Blocks while kQueueLength items wait. An exception
  // that it throws is the stream's error. `skipped`, which must not throw, runs instead once earlier work has
  // failed: for work that others wait for.
  void submit(std::function<void()> work, std::function<void()> skipped = {});

 private:
  static constexpr std::uint32_t kQueueLength = 256;

  // An empty `run` ends the worker.
  struct Item {
    std::function<void()> run;
    std::function<void()> skipped;
  };

  void push(Item item);
  void follow_within_capture(CpuStream& leader);
  void work(int threads);
  void execute(const Item& item) noexcept;
  void refuse_own_worker(const char* what) const;
  [[noreturn]] void refuse(const std::string& message, const std::string& hint) const;

  Device& device_;
  std::unique_ptr<CpuCapturedWork> capture_;   // while capturing
  CpuCapturedWork* recording_ = nullptr;       // capture_, or that of the stream which this one follows
  CpuCapturedWork::Branch* branch_ = nullptr;  // of it: where submissions go meanwhile

  // A ring between one producer, the host, and one consumer, the worker. Counts wrap around.
  std::array<Item, kQueueLength> ring_;
  alignas(64) std::atomic<std::uint32_t> submitted_{0};
  alignas(64) std::atomic<std::uint32_t> finished_{0};
  std::exception_ptr error_;  // the worker's; the host's once finished_ has caught up
  std::thread worker_;        // last: starts when the rest is there
};

}  // namespace headrace
