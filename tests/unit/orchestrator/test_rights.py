"""Laws of rights: a token gives no more than its person has, a higher role no less; an owner's right is theirs."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from orchestrator.model.people import Role
from orchestrator.model.rights import WHOLE, Grants, Place, Right

PROJECTS = ("vision", "speech", "common")
roles, maybe = st.sampled_from(list(Role)), st.none() | st.sampled_from(list(Role))
projects = st.sampled_from(PROJECTS)
grants = st.builds(Grants, maybe, st.dictionaries(projects, roles))
rights = st.builds(Right, roles, maybe, st.sampled_from(["project", "farm", "any"]))
places = st.lists(st.builds(Place, projects, st.sampled_from(["anna", "bob"])), max_size=3)


@given(grants, roles, st.just("") | projects, roles, st.none() | projects)
def test_a_token_gives_no_more_than_it_says(own: Grants, most: Role, only: str, least: Role, where: str | None) -> None:
    left = own.within(most, only)
    expected = own.reach(least, where) and most.reaches(least) and only in ("", where)
    assert left.reach(least, where) is expected
    assert left.visible is None or left.visible <= (own.visible or {*PROJECTS})


@given(grants, roles, rights, places, st.data())
def test_a_higher_role_may_no_less(own: Grants, role: Role, needs: Right, of: list[Place], data: st.DataObject) -> None:
    if needs.why_not("anna", own, of):
        return
    where = data.draw(st.sampled_from(["", *PROJECTS]))
    if where:
        before = own.projects.get(where)
        raised = Grants(own.farm, {**own.projects, where: role if before is None or role.reaches(before) else before})
    else:
        raised = Grants(role if own.farm is None or role.reaches(own.farm) else own.farm, own.projects)
    assert not needs.why_not("anna", raised, of)


@given(rights, places)
def test_nobody_may_nothing_and_the_owner_of_the_machine_all(needs: Right, of: list[Place]) -> None:
    assert needs.why_not("anna", Grants(), of) and not needs.why_not("anna", WHOLE, of)


@given(grants, rights, places)
def test_what_another_one_owns_takes_the_full_role(own: Grants, needs: Right, of: list[Place]) -> None:
    theirs = [Place(place.project, "bob") for place in of]
    plain = Right(needs.least, None, needs.of)
    if theirs:
        assert bool(needs.why_not("anna", own, theirs)) == bool(plain.why_not("anna", own, theirs))
