// What messages call options and functions in C.
#pragma once

namespace headrace::c {

// From its first call on, messages of this process name options and functions as <headrace/headrace.h> has them.
void speak_c();

}  // namespace headrace::c
