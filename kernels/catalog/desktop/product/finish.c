                if (WHOLE != 0 || (row < rows && column < columns4)) {
                    STORE_dst(dst_start + batch * dst_batch + row * dst_stride + column, ACTIVATE(sum));
                }
