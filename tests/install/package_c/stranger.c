/* The C interface, from a project without C++. */
#include <headrace/headrace.h>

#include <stdio.h>
#include <string.h>

int main(void) {
  hr_devices* devices = NULL;
  const char* name = NULL;
  if (hr_devices_open("cpu:2", &devices) != HR_OK || hr_devices_name(devices, 1, &name) != HR_OK) {
    fprintf(stderr, "%s\n", hr_last_error()->what);
    return 1;
  }
  printf("%s %s\n", hr_version(), name);
  hr_devices_free(devices);
  const int refused =
      hr_devices_open("toaster", &devices) != HR_OK && strcmp(hr_last_error()->kind, "ConfigError") == 0;
  return refused ? 0 : 1;
}
