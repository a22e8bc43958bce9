                sums[r] = MAD(TO_WIDE4(SPLAT(value.x)), TO_WIDE4(w0), sums[r]);
                sums[r] = MAD(TO_WIDE4(SPLAT(value.y)), TO_WIDE4(w1), sums[r]);
                sums[r] = MAD(TO_WIDE4(SPLAT(value.z)), TO_WIDE4(w2), sums[r]);
                sums[r] = MAD(TO_WIDE4(SPLAT(value.w)), TO_WIDE4(w3), sums[r]);
