// A kernel that is written out whole for its expression or its axes (`maps.py`, `taking.py`).
{
    GENERATED
}
