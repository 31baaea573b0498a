//go:build vulkan && (linux || darwin)

#include "../csrc/vulkan/vulkan.c"
