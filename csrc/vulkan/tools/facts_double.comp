// facts_double.comp computes what facts.c compares with the host's results.
#version 460
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_buffer_reference_uvec2 : require
layout(local_size_x = 64) in;
layout(buffer_reference, std430, buffer_reference_align = 8) buffer Numbers { double at[]; };
layout(push_constant) uniform Job { uvec2 from, to; uint count; } job;
void main() {
  uint i = gl_GlobalInvocationID.x;
  if (i >= job.count)
    return;
  Numbers from = Numbers(job.from), to = Numbers(job.to);
  double x = from.at[4 * i], y = from.at[4 * i + 1], z = from.at[4 * i + 2], one = from.at[4 * i + 3];
  precise double fused = fma(x, y, z);
  precise double quotient = x / y;
  precise double root = sqrt(abs(x));
  precise double same = x * one;
  to.at[4 * i] = fused;
  to.at[4 * i + 1] = quotient;
  to.at[4 * i + 2] = root;
  to.at[4 * i + 3] = same;
}
