// Which GPU the calling thread's CUDA calls mean. Private to the CUDA backend.
#pragma once

#include <string>

namespace headrace {

// Makes a GPU the calling thread's current device until the end of the scope: for calls on threads of the
// embedding program, whose own current device is not ours to change.
class CurrentDevice {
 public:
  // Throws DeviceError, which calls the GPU `name`.
  CurrentDevice(int ordinal, const std::string& name);
  ~CurrentDevice();
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;

 private:
  int ordinal_;
  int before_ = 0;
};

}  // namespace headrace
