// convert.h: explicit conversions: convert_T with saturation and rounding modes, and as_T. All targets share it.

CC_BEGIN

enum {
  CC_SAT = 1,
  CC_RT_DEFAULT = 0, // to nearest for floating results, towards zero for integers
  CC_RTE = 1,
  CC_RTZ = 2,
  CC_RTP = 3,
  CC_RTN = 4,
};

//@ cc_step_to
// cc_step_to moves a floating value to its neighbour, up or down; zeros and infinities included.
template <class F> CC_FN F cc_step_to(F x, bool up) {
  typedef cc_sint<F> I;
  I b = cc_as_bits<I>(x);
  if (x == F(0.0f))
    b = up ? I(1) : I(cc_int_min<I>() | 1);
  else
    b = (b >= 0) == up ? I(b + 1) : I(b - 1);
  return cc_as_bits<F>(b);
}

//@ cc_convert cc_convert_lane
// cc_directed corrects r, which is x rounded to nearest. cmp is the sign of r - x, exactly.
template <int R, class F> CC_FN F cc_directed(F r, int cmp, bool negative) {
  if (R == CC_RTZ && cmp != 0 && (cmp > 0) == !negative)
    return cc_step_to(r, negative);
  if (R == CC_RTP && cmp < 0)
    return cc_step_to(r, true);
  if (R == CC_RTN && cmp > 0)
    return cc_step_to(r, false);
  return r;
}

// cc_conv<To, From>::to<SAT, R> by the classes of both ends.
template <class T, class S, bool TF, bool SF> struct cc_conv;

// integer to integer
template <class T, class S> struct cc_conv<T, S, false, false> {
  template <int SAT, int R> static CC_FN T to(S x) {
    if (SAT) {
      bool neg = cc_is<S>::sign && x < S(0);
      if (neg && (!cc_is<T>::sign || cc_long(x) < cc_long(cc_int_min<T>())))
        return cc_int_min<T>();
      if (!neg && cc_ulong(x) > cc_ulong(cc_int_max<T>()))
        return cc_int_max<T>();
    }
    return T(x);
  }
};

// floating to integer
template <class T, class S> struct cc_conv<T, S, false, true> {
  template <int SAT, int R> static CC_FN T to(S s) {
    typedef cc_real<S> F;
    F x = F(s);
    if (R == CC_RTE)
      x = cc_m_rint(x);
    else if (R == CC_RTP)
      x = cc_m_ceil(x);
    else if (R == CC_RTN)
      x = cc_m_floor(x);
    if (SAT) {
      // 2^bits is exact in every floating type, the largest integer is not.
      const F top = F(cc_ulong(1) << (sizeof(T) * 8 - 2)) * (cc_is<T>::sign ? F(2) : F(4));
      if (!(x == x))
        return T(0);
      if (x >= top)
        return cc_int_max<T>();
      if (x <= (cc_is<T>::sign ? -top : F(0)))
        return cc_int_min<T>();
    } else if (sizeof(T) < 4) {
      return T(cc_int(x)); // wraps instead of being undefined
    }
    return T(x);
  }
};

// integer to floating
template <class T, class S> struct cc_conv<T, S, true, false> {
  template <int SAT, int R> static CC_FN T to(S x) {
    T r = T(x);
    if (R == CC_RT_DEFAULT || R == CC_RTE)
      return r;
    const T top = T(cc_ulong(1) << (sizeof(S) * 8 - 2)) * (cc_is<S>::sign ? T(2) : T(4));
    int cmp = 1; // r can be 2^bits, which S cannot hold
    if (r < top) {
      S back = S(r);
      cmp = back > x ? 1 : back < x ? -1 : 0;
    }
    return cc_directed<R>(r, cmp, x < S(0));
  }
};

// floating to floating
template <class T, class S> struct cc_conv<T, S, true, true> {
  template <int SAT, int R> static CC_FN T to(S x) {
    T r = T(x);
    if (sizeof(T) >= sizeof(S) || R == CC_RT_DEFAULT || R == CC_RTE)
      return r;
    const cc_real<S> rounded = cc_real<S>(r), exact = cc_real<S>(x);
    int cmp = rounded > exact ? 1 : rounded < exact ? -1 : 0;
    return cc_directed<R>(r, cmp, x < S(0));
  }
};

// integer to half, by way of float, which holds all integers that do not become infinite anyway
template <class S> struct cc_conv<cc_half, S, true, false> {
  template <int SAT, int R> static CC_FN cc_half to(S x) {
    const cc_int most = 1 << 20;
    cc_int k = cc_is<S>::sign && x < S(0) ? (cc_long(x) < -cc_long(most) ? -most : cc_int(x))
                                          : (cc_ulong(x) > cc_ulong(most) ? most : cc_int(x));
    return cc_conv<cc_half, float, true, true>::template to<SAT, R>(float(k));
  }
};

template <class T, int SAT, int R, class S> CC_FN T cc_convert_lane(S x) {
  return cc_conv<T, S, bool(cc_is<T>::fp), bool(cc_is<S>::fp)>::template to<SAT, R>(x);
}
// A bool is an integer of 0 and 1.
template <class T, int SAT, int R> CC_FN T cc_convert_lane(bool x) {
  return cc_convert_lane<T, SAT, R>(cc_uchar(x));
}

template <class V, int SAT, int R, class S> struct cc_convert_ {
  static CC_FN V to(S x) { return cc_convert_lane<V, SAT, R>(x); }
};
template <class T, int N, int SAT, int R, class S>
struct cc_convert_<cc_vec<T, N>, SAT, R, cc_vec<S, N>> {
  static CC_FN cc_vec<T, N> to(cc_vec<S, N> x) {
    cc_vec<T, N> r;
    for (int i = 0; i < N; i++)
      r.v[i] = cc_convert_lane<T, SAT, R>(x.v[i]);
    return r;
  }
};
// convert_float4(1) of a scalar is not valid in OpenCL, but its meaning is clear.
template <class T, int N, int SAT, int R, class S>
struct cc_convert_<cc_vec<T, N>, SAT, R, S> {
  static CC_FN cc_vec<T, N> to(S x) { return cc_splat<T, N>(cc_convert_lane<T, SAT, R>(x)); }
};

// cc_convert<T, 0 or CC_SAT, CC_R..>(x) is convert_T[_sat][_rt.](x).
template <class V, int SAT, int R, class S> CC_FN V cc_convert(S x) {
  return cc_convert_<V, SAT, R, S>::to(x);
}

//@
// cc_as<T>(x) is as_T(x).
template <class V, class S> CC_FN V cc_as(S x) { return cc_as_bits<V>(x); }

CC_END
