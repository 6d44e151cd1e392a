#include "headrace/pipeline/loader.h"

#include "headrace/pipeline/engine/stream_engine.h"

namespace headrace {

// Owns the running engine, which its threads share.
class Loader::Engine {
 public:
  Engine(const Dataset& dataset, DeviceGroup& devices, const LoaderOptions& options)
      : stream_(std::make_shared<StreamEngine>(dataset, devices, options)) {
    stream_->start();
  }
  ~Engine() {
    if (stream_->is_forked()) {
      // The threads and what their locks guard belong to the parent; the copy in this process is left alone.
      new std::shared_ptr<StreamEngine>(std::move(stream_));
      return;
    }
    stream_->shut_down();
  }
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  StreamEngine& operator*() const noexcept { return *stream_; }

 private:
  std::shared_ptr<StreamEngine> stream_;
};

Loader::Loader(const Dataset& dataset, DeviceGroup& devices, LoaderOptions options)
    : engine_(std::make_unique<Engine>(dataset, devices, options)) {}

Loader::~Loader() = default;

std::optional<Batch> Loader::next(int replica) { return (**engine_).next(replica); }

std::int64_t Loader::local_rows() const noexcept { return (**engine_).layout().local_rows; }

std::uint64_t Loader::steps_per_epoch() const noexcept { return (**engine_).schedule().steps_per_epoch(); }

const Fields& Loader::fields() const noexcept { return (**engine_).fields(); }

int Loader::threads() const noexcept { return (**engine_).threads(); }

bool Loader::tuned() const noexcept { return (**engine_).tuned(); }

std::vector<Choice> Loader::choices() const { return (**engine_).choices(); }

LoaderState Loader::state() const { return (**engine_).state(); }

LoaderStats Loader::stats() const { return (**engine_).stats(); }

std::string Loader::trace_json() const { return (**engine_).trace_json(); }

void Loader::stop() noexcept { (**engine_).stop(); }

}  // namespace headrace
