                    const int place = pixel;
                    const int written = picture;
                    const int area = pixels;
