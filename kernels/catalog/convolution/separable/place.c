                    const int picture = pixel / area;
                    const int place = pixel - picture * area;
                    const int written = picture;
