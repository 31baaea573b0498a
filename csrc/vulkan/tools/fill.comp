// fill.comp sets memory to a pattern of 8 bytes, by items of 1 or 4 bytes.
#version 460
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_buffer_reference_uvec2 : require
#extension GL_EXT_shader_8bit_storage : require
layout(local_size_x = 64) in;
layout(buffer_reference, std430, buffer_reference_align = 1) buffer Bytes { uint8_t at[]; };
layout(buffer_reference, std430, buffer_reference_align = 4) buffer Words { uint at[]; };
layout(push_constant) uniform Span { uvec2 to; uint count, unit, low, high; } span;
void main() {
  uint i = gl_GlobalInvocationID.x;
  if (i >= span.count)
    return;
  if (span.unit == 4)
    Words(span.to).at[i] = (i & 1) != 0 ? span.high : span.low;
  else
    Bytes(span.to).at[i] = uint8_t(((i & 4) != 0 ? span.high : span.low) >> (8 * (i & 3)));
}
