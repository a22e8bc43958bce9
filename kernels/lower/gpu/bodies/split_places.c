    // The places that a token sees, of which each split has as many whole turns as the others, but for the last.
    const int place = INT32(LOAD_ends(image));
    const int own = IMIN(IMAX(place, 0), capacity - 1);
    const int lowest = window > 0 ? IMAX(own - window + 1, 0) : 0;
    const int turns = (own - lowest + PLACES) / PLACES;
    const int share = (turns + SPLITS - 1) / SPLITS * PLACES;
