// Functions without a handle, and the devices.
#include "headrace/bindings/c/library/handles.h"
#include "headrace/bindings/c/library/structs.h"
#include "headrace/devices/registry.h"

using headrace::c::given;
using headrace::c::guarded;

uint32_t hr_abi_version(void) { return HR_ABI_VERSION; }

const char* hr_version(void) { return HEADRACE_VERSION; }

void hr_string_free(char* text) { delete[] text; }

hr_status hr_devices_open(const char* spec, hr_devices** devices) {
  return guarded(__func__, [&] {
    const std::string named = &given(spec, "spec");
    auto& result = given(devices, "devices");
    auto group =
        std::make_shared<headrace::DeviceGroup>(headrace::open_devices(named, headrace::DeviceNeed::kMemory));
    result = new hr_devices{std::move(group)};
  });
}

hr_status hr_devices_count(const hr_devices* devices, int32_t* count) {
  return guarded(__func__, [&] { given(count, "count") = given(devices, "devices").group->size(); });
}

hr_status hr_devices_name(const hr_devices* devices, int32_t replica, const char** name) {
  return guarded(__func__, [&] {
    const headrace::DeviceGroup& group = *given(devices, "devices").group;
    headrace::c::check_index(static_cast<std::size_t>(replica), static_cast<std::size_t>(group.size()), "device");
    given(name, "name") = group[replica].info().name.c_str();
  });
}

void hr_devices_free(hr_devices* devices) { delete devices; }
